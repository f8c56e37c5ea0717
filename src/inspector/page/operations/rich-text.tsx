import { PlainText } from "../parts/plain-text.tsx";

/** A text in which http(s) addresses are links and nothing else is anything. */
export function RichText(props: {
  readonly text: string;
  /** Characters that are shown at first. @default 2,000 */
  readonly most?: number;
}) {
  return (
    <div class="rich-text">
      <PlainText {...props} hasLinks />
    </div>
  );
}
