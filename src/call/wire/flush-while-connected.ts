import type { Transport } from "./transport.ts";

/** Waits until what was sent has left this process; not for a connection that is lost, which may never come back. */
export async function flushWhileConnected(transport: Transport): Promise<void> {
  if (!transport.isConnected) return;
  await new Promise<void>((resolve, reject) => {
    const forget = transport.onDisconnect(resolve);
    transport.flush().then(resolve, reject).finally(forget);
  });
}
