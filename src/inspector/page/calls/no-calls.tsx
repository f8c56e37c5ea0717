import { CopyButton } from "../parts/copy-button.tsx";
import { Empty } from "../parts/notice.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { asCurl } from "../result/copy-text.ts";
import { toHash } from "../router.ts";
import { useAsked, useSession } from "../session.ts";

/** Says how to make a call when there was none. */
export function NoCalls() {
  const { api, hello, live } = useSession();
  const { origin } = location;
  const { value: curl } = useAsked(
    async (signal) => {
      const { operations } = await api.operations(signal);
      const first = operations.find(({ type }) => type === "query");
      if (first === undefined) return undefined;
      const operation = await api.operation(first.id, signal);
      const input = operation.sample === undefined ? undefined : { value: operation.sample };
      // In one line: a text in the middle of a page has no room for more.
      return asCurl({ operation, input, hello, origin })?.replaceAll(" \\\n ", "");
    },
    [api, live.operations],
  );
  return (
    <Empty title="No calls yet.">
      <p>
        Calls appear here as they happen. <a href={toHash("operations")}>Run an operation</a>
        {curl === undefined ? "." : ", or call one from a shell:"}
      </p>
      {curl !== undefined && (
        <>
          <pre>{visibleText(curl, 2_000)}</pre>
          <CopyButton label="Copy" what="the command" text={() => curl} />
        </>
      )}
      {hello.places.mcp !== undefined && (
        <p>
          Clients of MCP connect to <code class="break">{`${origin}${hello.places.mcp}`}</code>
        </p>
      )}
    </Empty>
  );
}
