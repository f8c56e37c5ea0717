import type { OperationView } from "../../protocol.ts";
import { Facts } from "../parts/facts.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { accessWords, annotationWords, planWords } from "./access-words.ts";

const MOST_TAGS = 50;
const MOST_ERRORS = 200;

/** What is known of an operation beside its schemas: who may call it, how it is reached, how it fails. */
export function AboutPanel({ operation }: { readonly operation: OperationView }) {
  const { tags = [], http, tool, errors = [] } = operation;
  return (
    <div class="stack card">
      <Facts
        facts={[
          ["Who may call it", accessWords(operation).join("\n")],
          ["Plans", planWords(operation).join("\n")],
          ["What it says of itself", annotationWords(operation).join("\n") || "Nothing."],
          ["Tags", tags.slice(0, MOST_TAGS).join(", ")],
          ["Over HTTP", http && `${http.method} ${http.path}`],
          ["Over MCP", tool],
        ]}
      />
      {errors.length > 0 && <h3>Errors it announces</h3>}
      <Facts
        facts={errors
          .slice(0, MOST_ERRORS)
          .map(({ code, httpStatus, description = "" }) => [
            visibleText(code, 200),
            `${description} ${httpStatus === undefined ? "" : `(HTTP ${httpStatus})`}`,
          ])}
      />
    </div>
  );
}
