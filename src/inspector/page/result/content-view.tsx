import { isObject } from "../../../core/schema/json-schema.ts";
import { base64Size, MOST_FILE_BYTES } from "../form/file-bytes.ts";
import { Badge, CopyButton, Empty, MoreList } from "../parts/controls.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showBytes, visibleText } from "../parts/show.ts";
import { listIn, membersIn, ownOf, shortJson, shownText } from "../parts/show-json.ts";
import { bytesOfBase64, saveFile } from "./copy-as.tsx";

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
  const { text, uri, mimeType } = isObject(resource) ? resource : rest;
  const media = mediaOfBlock(block, at);
  const name = `Block ${at + 1}`;
  const isText = typeof text === "string";
  return (
    <div class="card stack tight">
      <div class="row small">
        <strong>{name}</strong>
        <Badge>{visibleText(shownText(type), 40)}</Badge>
        <span class="soft break">
          {isText &&
            [uri, mimeType].map((told) => told !== undefined && `${visibleText(shownText(told), 200)} `)}
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

/** An image or a sound from the page's own memory; anything else is named, and offered as a file. */
export function MediaView({ media }: { readonly media: Media }) {
  const { kind, mimeType, base64, bytes } = media;
  const name = visibleText(media.name, 120);
  const address = `data:${mimeType};base64,${base64}`;
  return (
    <figure class="media stack tight">
      {kind === "image" && <img src={address} alt={`${name} (${mimeType})`} />}
      {/* biome-ignore lint/a11y/useMediaCaption: nobody wrote captions for what a tool returned */}
      {kind === "audio" && <audio controls src={address} aria-label={`${name} (${mimeType})`} />}
      <figcaption class="row small">
        <span class="soft break">
          <bdi>{name}</bdi> · {visibleText(mimeType)} · {showBytes(bytes)}
        </span>
        {base64 === undefined ? (
          <span class="soft">Not base64, or more than 8 MB.</span>
        ) : (
          <button
            type="button"
            onClick={() => saveFile(fileName(media.name, mimeType), bytesOfBase64(base64))}
          >
            Download
          </button>
        )}
      </figcaption>
    </figure>
  );
}

/** Something to be seen, heard or kept: an image, a sound, or bytes of any kind. */
export interface Media {
  readonly kind: "image" | "audio" | "file";
  readonly mimeType: string;
  /** Base64, checked; nothing where it is not, or is more than a page should hold. */
  readonly base64: string | undefined;
  /** Of the bytes themselves. */
  readonly bytes: number;
  readonly name: string;
}

const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/[a-z0-9][a-z0-9.+-]{0,60}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Reads base64 of a kind; what is neither image nor sound, or not base64, is a file. */
export function mediaOf(base64: string, mimeType: unknown, name: string): Media {
  const [plain = ""] = typeof mimeType === "string" ? mimeType.toLowerCase().split(";", 1) : [];
  const type = plain.trim().slice(0, 100);
  const bytes = base64Size(base64);
  const isGood = bytes <= MOST_FILE_BYTES && base64.length % 4 === 0 && BASE64.test(base64);
  const kind = !isGood ? "file" : IMAGES.test(type) ? "image" : AUDIO.test(type) ? "audio" : "file";
  return {
    kind,
    mimeType: type === "" ? "unknown type" : type,
    base64: isGood ? base64 : undefined,
    bytes,
    name,
  };
}

/** The media of a content block; nothing for other blocks. */
export function mediaOfBlock(block: unknown, at: number): Media | undefined {
  if (!isObject(block)) return undefined;
  const { type, data, mimeType, resource } = block;
  if ((type === "image" || type === "audio") && typeof data === "string") {
    return mediaOf(data, mimeType, `${type === "image" ? "Image" : "Sound"} ${at + 1}`);
  }
  if (type !== "resource" || !isObject(resource) || typeof resource["blob"] !== "string") return undefined;
  const uri = typeof resource["uri"] === "string" ? resource["uri"] : `Resource ${at + 1}`;
  return mediaOf(resource["blob"], resource["mimeType"], uri.slice(0, 200));
}

/** The bytes that data is, in the form JSON holds them: `{"$waybill": ["bytes", base64]}`. */
export function bytesOf(data: unknown): string | undefined {
  const [kind, base64] = listIn(ownOf(data, "$waybill"));
  return kind === "bytes" && typeof base64 === "string" ? base64 : undefined;
}

/** A name that is safe for a file. */
export function fileName(name: string, mimeType: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const plain = last
    .replace(/[^\w.-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(-80);
  const ending = mimeType === "image/svg+xml" ? "svg" : /^[\w-]+\/([a-z0-9]+)$/.exec(mimeType)?.[1];
  if (/\.\w{1,8}$/.test(plain)) return plain;
  return `${plain === "" ? "file" : plain}.${ending ?? "bin"}`;
}

const SHOWN = 20_000;

/** A text of any length: its beginning, more when asked for, to be copied and kept. */
export function Sheet({
  label,
  text,
  file,
}: {
  /** What it is, for screen readers. */
  readonly label: string;
  readonly text: string;
  /** What it is called as a file; without one it is not offered. @default none */
  readonly file?: string | undefined;
}) {
  return (
    <div class="stack tight">
      <div class="row sheet-tools">
        <CopyButton label="Copy" what={label} text={() => text} />
        {file !== undefined && (
          <button type="button" onClick={() => saveFile(file, text)}>
            Download
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section cannot be preformatted */}
      <pre class="sheet" role="region" aria-label={label} tabIndex={0}>
        <PlainText text={text} most={SHOWN} />
      </pre>
    </div>
  );
}
