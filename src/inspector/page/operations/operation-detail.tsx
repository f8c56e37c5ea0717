import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { OperationRow, OperationView } from "../../protocol.ts";
import { Pending } from "../parts/notice.tsx";
import { titled } from "../parts/show.ts";
import { Tabs } from "../parts/tabs.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { toHash } from "../router.ts";
import { useAsked, useChanges, useSession } from "../session.ts";
import { AboutPanel } from "./about-panel.tsx";
import { takeOpened } from "./open-with-input.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { RichText } from "./rich-text.tsx";
import { RunPanel } from "./run-panel.tsx";
import { SchemaPanel } from "./schema-panel.tsx";
import { TypeBadge } from "./type-badge.tsx";
import { useWorkspace } from "./workspace.ts";

/** The operation that is chosen: what it is, and a place to run it. */
export function OperationDetail({
  id,
  row,
  revision,
}: {
  readonly id: string;
  /** What the list knows of it, shown until more is known. */
  readonly row: OperationRow | undefined;
  readonly revision: number | undefined;
}) {
  const { api } = useSession();
  const workspace = useWorkspace();
  const asked = useAsked((signal) => api.operation(id, signal), [api, id, revision]);
  const operation = asked.value ?? workspace.known(id);
  return (
    <div class="stack operation">
      <a class="only-narrow" href={toHash("operations")}>
        ← Back to the list
      </a>
      <Head id={id} about={{ ...row, ...operation }} />
      <Pending {...asked} value={operation} what="the operation" />
      {operation !== undefined && <Parts desk={workspace.desk(operation)} />}
    </div>
  );
}

function Head({ id, about }: { readonly id: string; readonly about: Partial<OperationRow & OperationView> }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    // Whoever chose it somewhere else goes on here; whoever has just come stays at the beginning.
    if (document.activeElement !== document.body) heading.current?.focus();
  }, []);
  const { type, title, source, version, annotations, destructive, description, summary = "" } = about;
  return (
    <header class="operation-head stack tight">
      <h2 class="mono break" id="operation-title" tabIndex={-1} ref={heading}>
        <bdi>{visibleText(id, 500)}</bdi>
      </h2>
      <div class="row small soft">
        {type && <TypeBadge type={type} isDestructive={annotations?.destructive ?? destructive} />}
        {source !== undefined && (
          <span>
            from <a href={toHash("sources", source)}>{visibleText(source, 100)}</a>
          </span>
        )}
        {version !== undefined && `version ${visibleText(version, 60)}`}
      </div>
      {title && (
        <strong>
          <bdi>{visibleText(title, 300)}</bdi>
        </strong>
      )}
      <RichText text={description ?? summary} most={600} />
    </header>
  );
}

function Parts({ desk }: { readonly desk: OperationDesk }) {
  useChanges(desk);
  const { operation } = desk;
  useEffect(() => {
    const opened = takeOpened(operation.id);
    if (opened === undefined) return;
    desk.tab = "run";
    desk.replace(opened.input);
    // An earlier result would look like that of this input.
    if (!desk.isRunning) desk.set({ run: undefined });
    document.querySelector<HTMLElement>(".run-button")?.focus();
    if (opened.isRun) void desk.start();
  }, [desk, operation.id]);
  const schema = (what: "input" | "output") => ({
    key: what,
    label: `${titled(what)} schema`,
    panel: () => <SchemaPanel schema={operation[`${what}Schema`]} what={what} />,
  });
  return (
    <Tabs
      label="Operation"
      chosen={desk.tab}
      onChoose={(tab) => desk.set({ tab })}
      tabs={[
        { key: "run", label: "Run", panel: () => <RunPanel desk={desk} /> },
        schema("input"),
        schema("output"),
        { key: "about", label: "About", panel: () => <AboutPanel operation={operation} /> },
      ]}
    />
  );
}
