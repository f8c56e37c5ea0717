import { showBytes } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { fileName, type Media } from "./media-of.ts";
import { bytesOfBase64, saveFile } from "./save-file.ts";

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
