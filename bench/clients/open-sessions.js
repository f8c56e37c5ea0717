// @ts-check
import { connect } from "node:net";
import { openSession } from "./mcp-requests.js";

/** Opens as many sessions of 2025 as it is told to, and keeps a GET stream open in each where that is asked for. */
const [port = "0", kind = "none"] = process.argv.slice(2);
const AT_ONCE = 20;

/** @param {Readonly<Record<string, string>>} session @returns {Promise<void>} */
function openStream(session) {
  const fields = Object.entries({ ...session, accept: "text/event-stream" });
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1");
    socket.on("error", reject);
    socket.once("data", (head) =>
      head.toString().startsWith("HTTP/1.1 200") ? resolve() : reject(new Error(head.toString())),
    );
    socket.write(["GET /mcp HTTP/1.1", "host: 127.0.0.1", ...lines, "", ""].join("\r\n"));
  });
}

/** @param {number} count */
async function openAll(count) {
  let left = count;
  let opened = 0;
  const work = async () => {
    while (left-- > 0) {
      const session = await openSession(`http://127.0.0.1:${port}/mcp`);
      if (kind === "streams") await openStream(session);
      opened += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return opened;
}

process.on("message", async (message) => {
  if (typeof message === "number") process.send?.({ opened: await openAll(message) });
});
process.send?.({ ready: true });
