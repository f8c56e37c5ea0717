import { useState } from "preact/hooks";
import { counted } from "../parts/show.ts";
import { Tabs } from "../parts/tabs.tsx";
import { navigate, toHash } from "../router.ts";
import { useKeys, useSession } from "../session.ts";
import { CallDetail } from "./call-detail.tsx";
import { type CallFilter, NO_FILTER } from "./call-filter.ts";
import { ListPanel } from "./list-panel.tsx";
import { OperationTable } from "./operation-table.tsx";
import { Overview } from "./overview.tsx";
import { useBeat } from "./use-beat.ts";
import "./calls.css";

/** What was looked at last, for when the view is shown again. */
let kept: CallFilter = NO_FILTER;

/** Everything that passes through the gateway, as it happens. */
export function CallsView({ chosen }: { readonly chosen: string | undefined }) {
  const { hello, live } = useSession();
  const [filter, setFilter] = useState(kept);
  const [tab, setTab] = useState("list");
  useBeat();
  useKeys(leave);
  kept = filter;
  const seq = chosen === undefined ? undefined : Number(chosen);
  const choose = (text: string): void => {
    setFilter({ ...NO_FILTER, text });
    setTab("list");
  };
  const tabs = [
    {
      key: "list",
      label: "Calls",
      panel: () => <ListPanel chosen={seq} filter={filter} onFilter={setFilter} />,
    },
    { key: "operations", label: "By operation", panel: () => <OperationTable onChoose={choose} /> },
  ];
  const state = seq === undefined ? "" : " has-chosen";
  return (
    <div class={`calls${state}`}>
      <Overview />
      <div class={`split${state}`}>
        <section class="list-side" aria-label="List of calls">
          {!hello.isOperator && (
            <p class="told small">You see your own calls alone; the scope waybill:inspect shows all.</p>
          )}
          {live.dropped > 0 && (
            <p class="told small">{counted(live.dropped, "call")} not shown: the page did not keep up.</p>
          )}
          <Tabs label="Ways to look at calls" tabs={tabs} chosen={tab} onChoose={setTab} />
        </section>
        {seq !== undefined && (
          <section class="detail-side" aria-label="The chosen call">
            <CallDetail key={seq} seq={seq} />
          </section>
        )}
      </div>
    </div>
  );
}

/** Leaves the call wherever the focus is; in a field, Escape belongs to the field. */
function leave({ key, target }: KeyboardEvent): void {
  const isField = target instanceof Element && target.matches("input, select, textarea");
  if (key === "Escape" && !isField) navigate(toHash("calls"));
}
