import { CommandError, EXIT, type Io } from "../io.ts";
import { createPastedCommand } from "../pasted-command.ts";
import type { RemoteAddress } from "./remote-gateway.ts";
import { readTarget, type SourceFlags } from "./session.ts";
import { gatewayBase, tokenOf } from "./target-config.ts";

/** Flags of commands that look at a gateway that runs. */
export type GatewayFlags = Pick<SourceFlags, "config" | "url" | "tokenEnv">;

/** The gateway at an address, or the one that runs for the config and proves it. */
export async function findGateway(io: Io, flags: GatewayFlags): Promise<RemoteAddress> {
  if (flags.url !== undefined) {
    const token = tokenOf(io, flags);
    return { base: gatewayBase(flags.url), ...(token !== undefined && { token }), signal: io.signal };
  }
  const target = await readTarget(io, { config: flags.config });
  try {
    const { findRunning } = await import("./running-gateway.ts");
    const found = await findRunning(io.env, target.loaded);
    if (found !== undefined) return { ...found, signal: io.signal };
  } finally {
    await target.close();
  }
  throw new CommandError(
    `No gateway runs for this config; start it with "${createPastedCommand(io, flags)("serve")}", or name one with --url.`,
    EXIT.callError,
  );
}
