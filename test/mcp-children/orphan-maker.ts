import { createStdioTransport } from "../../src/mcp/channels/stdio-transport.ts";

/** Starts a server through the transport, tells the number of its process, and ends without closing it: `<script> <how>`. */
const transport = createStdioTransport({
  command: process.execPath,
  args: [process.argv[2] ?? "", "stay"],
});
transport.onmessage = (message) => {
  const told = JSON.stringify({ leader: transport.pid, message });
  process.stdout.write(told, () => {
    if (process.argv[3] === "throw") throw new Error("It ends without a word.");
    process.exit(0);
  });
};
await transport.start();
