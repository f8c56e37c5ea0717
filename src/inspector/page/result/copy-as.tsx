import type { OperationView } from "../../protocol.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { useSession } from "../session.ts";
import { asCommand, asCurl, asTypeScript } from "./copy-text.ts";
import "./result.css";

/** Offers a call as `curl`, as `waybill call` and as TypeScript, to be copied or read first. */
export function CopyAs({
  operation,
  input,
}: {
  readonly operation: OperationView;
  /** @default a call without input */
  readonly input?: { readonly value: unknown } | undefined;
}) {
  const { hello } = useSession();
  const call = { operation, input, hello, origin: location.origin };
  const isDescribed = hello.places.document !== undefined;
  const forms = [
    { name: "curl", text: asCurl(call) },
    { name: "waybill call", text: isDescribed ? asCommand(call) : undefined },
    { name: "TypeScript", text: isDescribed ? asTypeScript(call) : undefined },
  ].flatMap(({ name, text }) => (text === undefined ? [] : [{ name, text }]));
  // Without the HTTP API there is nothing that these would reach.
  if (forms.length === 0) return null;
  return (
    <div class="copy-as stack tight">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields */}
      <div class="row" role="group" aria-label="Copy this call">
        {forms.map(({ name, text }) => (
          <CopyButton key={name} label={`Copy as ${name}`} what={name} text={() => text} />
        ))}
      </div>
      <details>
        <summary class="soft small">Show the commands</summary>
        {forms.map(({ name, text }) => (
          <pre key={name} class="sheet">
            <PlainText text={text} />
          </pre>
        ))}
        {hello.isAuthOn && <p class="soft small">Set WAYBILL_TOKEN to your token first.</p>}
      </details>
    </div>
  );
}
