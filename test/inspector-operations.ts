/**
 * Operations of a project that is looked at, as JavaScript: one for each thing that the inspector shows. What happened to handlers
 * that were told to stop is written to `stopped.log`, beside the module.
 */
export const OPERATIONS_MODULE = `
import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { CallError, defineOperation, toolError, Type } from "waybill";
const common = { namespace: "post", version: "1.0.0", outputSchema: Type.Unknown() };
const none = Type.Object({});
const note = (line) => appendFileSync(new URL("./stopped.log", import.meta.url), line + "\\n");

export const send = defineOperation({
  ...common, name: "send", type: "mutation", title: "Send a parcel",
  description: "Books a parcel. More at https://example.com/parcels and <b>nowhere</b> else.",
  inputSchema: {
    type: "object", required: ["to", "items"], additionalProperties: false,
    properties: {
      to: {
        type: "object", title: "Receiver", required: ["name", "country"],
        properties: {
          name: { type: "string", title: "Name", minLength: 2 },
          country: { type: "string", title: "Country", enum: ["DE", "FR", "NL", "PT", "ES", "IT"], default: "DE" },
          email: { type: "string", title: "Email", format: "email" },
        },
      },
      items: {
        type: "array", title: "Items", minItems: 1,
        items: {
          type: "object", title: "Item", required: ["sku"],
          properties: {
            sku: { type: "string", title: "Article" },
            count: { type: "integer", title: "Count", minimum: 1, default: 1 },
          },
        },
      },
      speed: {
        title: "Speed",
        oneOf: [
          { title: "Standard", type: "object", required: ["kind"], properties: { kind: { const: "standard" } } },
          {
            title: "By date", type: "object", required: ["kind", "on"],
            properties: { kind: { const: "date" }, on: { type: "string", format: "date", title: "On" } },
          },
        ],
      },
      label: { type: "string", title: "Label", contentEncoding: "base64", contentMediaType: "text/plain" },
      priority: { type: "integer", title: "Priority", default: 3 },
      door: { type: "string", title: "Door code", format: "password" },
    },
  },
  handler: (input) => ({ booked: input }),
});

export const price = defineOperation({
  ...common, name: "price", type: "query", description: "Tells a price that is not quite what its schema says.",
  inputSchema: none,
  outputSchema: {
    type: "object", additionalProperties: false, required: ["total"],
    properties: { total: { type: "number" }, currency: { type: "string", default: "EUR" } },
  },
  handler: () => ({ total: "12.5", surplus: "goes" }),
});

export const slow = defineOperation({
  ...common, name: "slow", type: "query", description: "Takes until it is told to stop.", inputSchema: none,
  async handler(_, { signal, progress, log }) {
    progress({ progress: 1, total: 4, message: "looking" });
    log("info", "began to look");
    note("slow began");
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, 60_000);
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
    note(signal.aborted ? "slow was told to stop" : "slow ran to its end");
    return "late";
  },
});

export const ticks = defineOperation({
  ...common, name: "ticks", type: "subscription", description: "Ticks until it is told to stop.", inputSchema: none,
  async *handler(_, { signal }) {
    try {
      for (let tick = 1; !signal.aborted; tick++) {
        yield { tick };
        await wait(40, undefined, { signal }).catch(() => {});
      }
    } finally {
      note("ticks ended");
    }
  },
});

export const tour = defineOperation({
  ...common, name: "tour", type: "query", description: "Calls two others, one of which calls a third.", inputSchema: none,
  async handler(_, { execute }) {
    await execute("post.hop", {});
    await execute("post.leaf", {});
    return { hops: 3 };
  },
});
export const hop = defineOperation({
  ...common, name: "hop", type: "query", description: "Calls one more.", inputSchema: none,
  async handler(_, { execute }) {
    await wait(15);
    await execute("post.leaf", {});
    return "hopped";
  },
});
export const leaf = defineOperation({
  ...common, name: "leaf", type: "query", description: "Calls nobody.", inputSchema: none,
  handler: () => wait(10, "leaf"),
});

export const ask = defineOperation({
  ...common, name: "ask", type: "mutation", description: "Asks which colour.", inputSchema: none,
  async handler(_, { elicit }) {
    const requestedSchema = {
      type: "object", required: ["colour"],
      properties: { colour: { type: "string", title: "Colour" } },
    };
    const { action, content } = await elicit({ message: "Which colour shall it be?", requestedSchema });
    return { action, colour: content?.colour ?? null };
  },
});

export const rows = defineOperation({
  ...common, name: "rows", type: "query", description: "Lists parcels.", inputSchema: none,
  handler: () => [
    { parcel: "P-1", city: "Lisbon", kg: 2.5 },
    { parcel: "P-2", city: "Osaka", kg: 12 },
    { parcel: "P-3", city: "Accra", kg: 0.3 },
  ],
});
export const series = defineOperation({
  ...common, name: "series", type: "query", description: "Counts parcels by day.", inputSchema: none,
  handler: () => Array.from({ length: 30 }, (_, day) => ({
    day: "2026-10-" + String(day + 1).padStart(2, "0"), parcels: 40 + ((day * 7) % 11), late: day % 3,
  })),
});

export const echo = defineOperation({
  ...common, name: "echo", type: "query", description: "Gives back what it is given.",
  inputSchema: Type.Object({ text: Type.String({ title: "Text" }) }),
  handler: ({ text }) => ({ text }),
});
export const refuse = defineOperation({
  ...common, name: "refuse", type: "query", description: "Says no.", inputSchema: none,
  handler: () => toolError({ left: 0 }, { code: "SOLD_OUT", message: "There are none left.", details: { asked: 3 } }),
});
export const fail = defineOperation({
  ...common, name: "fail", type: "query", description: "Breaks.", inputSchema: none,
  handler: () => { throw new CallError("NOT_FOUND", "There is no parcel P-9.", { details: { nearest: ["P-1"] } }); },
});
export const wipe = defineOperation({
  ...common, name: "wipe", type: "mutation", description: "Throws everything away.", inputSchema: none,
  annotations: { readOnly: false, destructive: true },
  handler: () => { note("wiped"); return { wiped: true }; },
});
`;

/** So many operations of one namespace, as JavaScript. */
export function manyOperationsModule(count: number): string {
  return `
const digits = (at) => String(at).padStart(5, "0");
export const all = Array.from({ length: ${count} }, (_, at) => ({
  id: "big.operation_" + digits(at), namespace: "big", name: "operation_" + digits(at), version: "1.0.0", type: "query",
  title: "Operation number " + at, description: "Does the thing of the number " + at + ", and tells how it went with parcels.",
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
  handler: () => ({ at }),
}));
`;
}

/** A picture of one red point. */
export const RED_POINT =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/** A hundredth of a second of silence. */
export const SILENCE = toWave(80);

function toWave(samples: number): string {
  const wave = Buffer.alloc(44 + samples, 0x80);
  wave.write("RIFF", 0);
  wave.writeUInt32LE(36 + samples, 4);
  wave.write("WAVEfmt ", 8);
  wave.writeUInt32LE(16, 16);
  wave.writeUInt16LE(1, 20);
  wave.writeUInt16LE(1, 22);
  wave.writeUInt32LE(8_000, 24);
  wave.writeUInt32LE(8_000, 28);
  wave.writeUInt16LE(1, 32);
  wave.writeUInt16LE(8, 34);
  wave.write("data", 36);
  wave.writeUInt32LE(samples, 40);
  return wave.toString("base64");
}
