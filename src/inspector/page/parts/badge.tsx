import type { ComponentChildren } from "preact";

/** What a badge means by its colour; what it says is in its text, too. */
export type Tone = "plain" | "ok" | "warn" | "bad" | "note" | "accent";

/** A short word with a ground of its own. */
export function Badge({
  tone = "plain",
  children,
  title,
  sign,
}: {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
  readonly title?: string;
  /** Stands before it, for those who see it. @default none */
  readonly sign?: string;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {sign && [<span aria-hidden="true">{sign}</span>, " "]}
      {children}
    </span>
  );
}
