import { Badge } from "../parts/badge.tsx";
import { isMembers, membersIn, shortJson, textOf } from "../parts/json-text.ts";
import { JsonTree } from "../parts/json-tree.tsx";
import { MoreList } from "../parts/more-list.tsx";
import { Empty } from "../parts/notice.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { mediaOfBlock } from "./media-of.ts";
import { MediaView } from "./media-view.tsx";
import { Sheet } from "./sheet.tsx";

/** The blocks of an MCP result, each as what it is. */
export function ContentView({ blocks }: { readonly blocks: readonly unknown[] }) {
  if (blocks.length === 0) return <Empty title="This result has no content blocks." />;
  return (
    <MoreList
      items={blocks}
      label="Content blocks"
      first={50}
      draw={(block, at) => <Block block={block} at={at} />}
    />
  );
}

function Block({ block, at }: { readonly block: unknown; readonly at: number }) {
  const { type, annotations, resource, ...rest } = membersIn(block);
  const { text, uri, mimeType } = isMembers(resource) ? resource : rest;
  const media = mediaOfBlock(block, at);
  const name = `Block ${at + 1}`;
  const isText = typeof text === "string";
  return (
    <div class="card stack tight">
      <div class="row small">
        <strong>{name}</strong>
        <Badge>{visibleText(textOf(type), 40)}</Badge>
        <span class="soft break">
          {isText &&
            [uri, mimeType].map((told) => told !== undefined && `${visibleText(textOf(told), 200)} `)}
          {annotations !== undefined && shortJson(annotations, 120)}
        </span>
      </div>
      {media !== undefined ? (
        <MediaView media={media} />
      ) : isText ? (
        <Sheet label={`Text of block ${at + 1}`} text={text} />
      ) : (
        <JsonTree value={block} label={name} />
      )}
    </div>
  );
}
