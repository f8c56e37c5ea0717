// @ts-check
// A result too long for a model: a valid preview goes out, the whole stays behind a link that can be read in ranges.
import assert from "node:assert/strict";
import { Type } from "waybill";
import { createMemoryStore, previewToolPayload } from "waybill/formats";

const schema = Type.Object({ rows: Type.Array(Type.Object({ id: Type.Integer(), note: Type.String() })) });
const rows = Array.from({ length: 2_000 }, (_, id) => ({ id, note: `Line ${id} of the log` }));
const store = createMemoryStore();

const reply = await previewToolPayload({
  meta: { status: "ok", summary: `${rows.length} log lines` },
  data: { rows },
  schema,
  store,
});
const { meta, data } = reply.structuredContent;
console.log(
  `${data.rows.length} of ${rows.length} rows sent, about ${meta.tokenUsage?.inline} of ${meta.tokenUsage?.total} tokens`,
);
assert.equal(meta.truncated, true);
assert.ok(data.rows.length > 0 && data.rows.length < rows.length);

const link = reply.content.find((block) => block.type === "resource_link");
assert.ok(link);
let whole = "";
for (let offset = 0; ; ) {
  const range = await store.read(link.uri, { offset, length: 50_000 });
  assert.ok(range);
  whole += range.text;
  if (range.nextOffset === undefined) break;
  offset = range.nextOffset;
}
assert.deepEqual(JSON.parse(whole).data.rows, rows);
console.log(`read back ${whole.length} characters`);
