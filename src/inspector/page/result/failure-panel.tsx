import type { CallFailure } from "../../protocol.ts";
import { Badge } from "../parts/badge.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { visibleText } from "../parts/visible-text.ts";
import "./result.css";

/** A call that never ran or broke, and what can be done about it. */
export function FailurePanel({ error }: { readonly error: CallFailure }) {
  const said = saidIn(error.details);
  return (
    <section class="stack" aria-label="Error">
      <div class="notice bad">
        <div class="row">
          <strong class="mono break">{visibleText(error.code, 200)}</strong>
          {error.retryable && <Badge tone="warn">trying again may help</Badge>}
          {error.correctable && <Badge tone="warn">the input can be corrected</Badge>}
        </div>
        <p>
          <PlainText text={error.message} />
        </p>
      </div>
      {said !== undefined && (
        <figure>
          <figcaption>The source said</figcaption>
          <blockquote>
            <PlainText text={said} />
          </blockquote>
        </figure>
      )}
      {error.details !== undefined && <JsonTree value={error.details} label="Details of the error" />}
    </section>
  );
}

/** What the source of the operation said, which is its words and not ours. */
function saidIn(details: unknown): string | undefined {
  const { said } = (typeof details === "object" && details !== null ? details : {}) as { said?: unknown };
  return typeof said === "string" ? said : undefined;
}
