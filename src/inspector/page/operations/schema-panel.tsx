import { useMemo } from "preact/hooks";
import type { JsonSchemaView } from "../../protocol.ts";
import { JsonTree } from "../parts/json-tree.tsx";
import { MoreList } from "../parts/more-list.tsx";
import { Empty } from "../parts/notice.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { RichText } from "./rich-text.tsx";
import { type OutlineRow, schemaOutline } from "./schema-outline.ts";

const FIRST_ROWS = 150;
const MOST_ROWS = 2_000;

/** A schema, as an outline for people and as JSON. */
export function SchemaPanel({
  schema,
  what,
}: {
  readonly schema: JsonSchemaView | undefined;
  readonly what: "input" | "output";
}) {
  const rows = useMemo(() => schemaOutline(schema ?? {}, MOST_ROWS), [schema]);
  if (schema === undefined) return <Empty title={`There is no ${what} schema: any JSON goes.`} />;
  return (
    <div class="stack">
      <div class="card outline">
        <MoreList items={rows} first={FIRST_ROWS} draw={drawRow} label={`Outline of the ${what} schema`} />
      </div>
      <details class="card">
        <summary>JSON</summary>
        <JsonTree value={schema} label={`The ${what} schema as JSON`} />
      </details>
    </div>
  );
}

function drawRow({ depth, name, type, isRequired, notes, description }: OutlineRow) {
  return (
    <div style={{ paddingInlineStart: `${depth * 1.125}rem` }}>
      <code>
        <bdi>{visibleText(name, 200)}</bdi>
      </code>{" "}
      <span class="toned accent">{visibleText(type, 1_500)}</span>
      {isRequired && <span class="toned bad"> required</span>}
      <span class="soft small">{visibleText(notes.map((note) => ` · ${note}`).join(""), 1_500)}</span>
      {description !== "" && (
        <div class="soft small">
          <RichText text={description} most={400} />
        </div>
      )}
    </div>
  );
}
