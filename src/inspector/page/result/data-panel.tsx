import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { EnvelopeView } from "../../protocol.ts";
import { isSameJson } from "../form/json-value.ts";
import { isMembers, textOf } from "../parts/json-text.ts";
import { JsonTree, type TreeMarks } from "../parts/json-tree.tsx";
import { chartOf } from "./chart-of.ts";
import { ChartView } from "./chart-view.tsx";
import { ContentView } from "./content-view.tsx";
import { bytesOf, mediaOf, mediaOfBlock } from "./media-of.ts";
import { MediaView } from "./media-view.tsx";
import { rowsOf } from "./rows-of.ts";
import { Sheet } from "./sheet.tsx";
import { TableView } from "./table-view.tsx";

const MOST_OTHERS = 4;

/** The data of a result, in the way that suits it, and in the others that it allows. */
export function DataPanel({
  envelope,
  marks,
}: {
  readonly envelope: EnvelopeView;
  readonly marks: TreeMarks;
}) {
  const { data, meta } = envelope;
  const bytes = bytesOf(data);
  const { blocks, rows, chart } = useMemo(() => sidesOf(envelope), [envelope]);
  const [wanted, setWay] = useState("");
  const ways = new Map<string, ComponentChildren>();
  if (bytes !== undefined)
    ways.set("Media", <MediaView media={mediaOf(bytes, meta["contentType"], "Data")} />);
  else if (blocks !== undefined) ways.set("Blocks", <ContentView blocks={blocks} />);
  if (typeof data === "string") ways.set("Text", <Sheet label="Data as text" text={data} file="data.txt" />);
  const tree = <JsonTree value={data} label="Data" marks={marks} />;
  // A list among many other members is not what the data is about.
  if (rows !== undefined && rows.others > MOST_OTHERS) ways.set("Tree", tree);
  if (rows !== undefined) ways.set("Table", <TableView rows={rows} />);
  if (chart !== undefined) ways.set("Chart", <ChartView chart={chart} />);
  ways.set("Tree", tree);
  const titles = [...ways.keys()];
  const way = ways.has(wanted) ? wanted : (titles[0] ?? "");
  return (
    <div class="stack tight">
      {titles.length > 1 && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields
        <div class="ways" role="group" aria-label="Show the data as">
          {titles.map((title) => (
            <button type="button" key={title} aria-pressed={title === way} onClick={() => setWay(title)}>
              {title}
            </button>
          ))}
        </div>
      )}
      {ways.get(way)}
    </div>
  );
}

/** What the data can be shown as. Content blocks are no table, whatever members they share. */
function sidesOf({ data, meta: { source, content } }: EnvelopeView) {
  const isContent =
    Array.isArray(data) &&
    data.length > 0 &&
    (data.every(isBlock) || (source === "mcp" && isSameJson(data, content)));
  if (isContent) return { blocks: data };
  // What can be seen or heard is shown with the text around it.
  const blocks = Array.isArray(content) && content.some(isSeen) ? content : undefined;
  return { blocks, rows: rowsOf(data), chart: chartOf(data) };
}

/** Types with the member that such a block has. */
const BLOCK = /^(?:text text|(?:image|audio) data|resource resource|resource_link uri)$/;

function isBlock(value: unknown): boolean {
  return isMembers(value) && Object.keys(value).some((key) => BLOCK.test(`${textOf(value["type"])} ${key}`));
}

function isSeen(block: unknown): boolean {
  return (mediaOfBlock(block, 0)?.kind ?? "file") !== "file";
}
