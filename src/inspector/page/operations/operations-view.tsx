import "./operations.css";
import { Empty, Pending } from "../parts/notice.tsx";
import { toHash } from "../router.ts";
import { useAsked, useRevision, useSession } from "../session.ts";
import { OperationDetail } from "./operation-detail.tsx";
import { OperationList } from "./operation-list.tsx";
import { useWorkspace } from "./workspace.ts";

/** The operations of the gateway: a list to search, and the one that is chosen, to be read and run. */
export function OperationsView({ chosen }: { readonly chosen: string | undefined }) {
  const { api } = useSession();
  const workspace = useWorkspace();
  const changes = useRevision("operations");
  const asked = useAsked((signal) => api.operations(signal), [api, changes]);
  const answer = asked.value ?? workspace.answer;
  workspace.answer = answer;
  const rows = answer?.operations;
  return (
    <div class={`split ${chosen === undefined ? "" : "has-chosen"}`}>
      <section class="list-side" aria-label="List of operations">
        <Pending {...asked} value={rows} what="the operations" />
        {rows?.length === 0 && (
          <Empty title="There are no operations yet.">
            <span>
              See in <a href={toHash("sources")}>Sources</a> whether one is down, or add one to the config.
            </span>
          </Empty>
        )}
        {rows !== undefined && rows.length > 0 && <OperationList rows={rows} chosen={chosen} />}
      </section>
      <section class="detail-side" aria-label="Operation" tabIndex={-1}>
        {chosen === undefined ? (
          <Empty title="Choose an operation">
            <span>To read about it and run it here.</span>
          </Empty>
        ) : (
          <OperationDetail
            key={chosen}
            id={chosen}
            row={rows?.find(({ id }) => id === chosen)}
            revision={answer?.revision}
          />
        )}
      </section>
    </div>
  );
}
