import type { ComponentChildren } from "preact";
import { PlainText } from "./plain-text.tsx";

/** Names and what is known under each; what is not known, or empty, is left out. */
export function Facts({
  facts,
}: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined || value === "" ? null : (
          <>
            <dt>{name}</dt>
            <dd>{typeof value === "string" ? <PlainText text={value} most={1_000} /> : value}</dd>
          </>
        ),
      )}
    </dl>
  );
}
