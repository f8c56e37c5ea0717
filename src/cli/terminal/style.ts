import picocolors from "picocolors";
import { wantsColours } from "../../gateway/serve/observe/wants-colours.ts";

/** How words are painted; where there are no colours, not at all. */
export type Style = Omit<ReturnType<typeof picocolors.createColors>, "isColorSupported">;

/** Says whether a stream gets colours. */
export function wantsColors(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return wantsColours(env, stream.isTTY === true);
}

/** Creates the colours of a stream. */
export function createStyle(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Style {
  return picocolors.createColors(wantsColors(stream, env));
}
