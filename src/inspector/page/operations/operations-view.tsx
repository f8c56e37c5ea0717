import { isObject } from "../../../core/schema/json-schema.ts";
import { findReference } from "../../../core/schema/schema-view.ts";
import "./operations.css";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { JsonSchemaView, OperationRow, OperationView } from "../../protocol.ts";
import { flattenSchema } from "../form/flatten-schema.ts";
import { type FormObject, listIn, membersIn, ownOf } from "../form/form-json.ts";
import { hintsOf, schemaTypes } from "../form/read-schema.ts";
import { useAsked, useChanges, useRevision, useSession } from "../page-session.ts";
import { Empty, Facts, MoreList, PendingNotice, Tabs, TypeBadge } from "../parts/controls.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { MarkdownText } from "../parts/markdown-text.tsx";
import { titled, visibleText } from "../parts/show.ts";
import { shortJson } from "../parts/show-json.ts";
import { toHash } from "../router.ts";
import { openFromLink, takeOpened } from "./open-with-input.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { OperationList } from "./operation-list.tsx";
import { RunPanel } from "./run-panel.tsx";
import { useWorkspace } from "./workspace.ts";

/** The operation that is chosen: what it is, and a place to run it. */
function OperationDetail({
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
      <PendingNotice {...asked} value={operation} what="the operation" />
      {operation !== undefined && <Parts desk={workspace.desk(operation)} />}
    </div>
  );
}

function Head({ id, about }: { readonly id: string; readonly about: Partial<OperationRow & OperationView> }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    // A reader who chose it somewhere else goes on here; one who has just come stays at the beginning.
    if (document.activeElement !== document.body) heading.current?.focus();
  }, []);
  const { type, title, source, version, annotations, destructive, description, summary = "" } = about;
  return (
    <header class="operation-head stack tight">
      <h2 class="mono break stay" id="operation-title" tabIndex={-1} ref={heading}>
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
      {title && title !== (description ?? summary) && (
        <strong>
          <bdi>{visibleText(title, 300)}</bdi>
        </strong>
      )}
      <MarkdownText text={description ?? summary} />
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

const MOST_TAGS = 50;
const MOST_ERRORS = 200;

/** What is known of an operation beside its schemas: who may call it, how it is reached, how it fails. */
function AboutPanel({ operation }: { readonly operation: OperationView }) {
  const { tags = [], http, tool, errors = [] } = operation;
  return (
    <div class="stack card">
      <Facts
        facts={[
          ["Who may call it", accessWords(operation).join("\n")],
          ["Plans", planWords(operation).join("\n")],
          ["Annotations", annotationWords(operation).join("\n") || "Nothing."],
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

const FIRST_ROWS = 150;
const MOST_ROWS = 2_000;

/** A schema, as an outline for people and as JSON. */
function SchemaPanel({
  schema,
  what,
}: {
  readonly schema: JsonSchemaView | undefined;
  readonly what: "input" | "output";
}) {
  const rows = useMemo(() => schemaOutline(schema ?? {}, MOST_ROWS), [schema]);
  if (schema === undefined) return <Empty title={`There is no ${what} schema: any JSON goes.`} />;
  return (
    <div class="stack">
      <div class="card outline">
        <MoreList items={rows} first={FIRST_ROWS} draw={drawRow} label={`Outline of the ${what} schema`} />
      </div>
      <details class="card">
        <summary>JSON</summary>
        <JsonTree value={schema} label={`The ${what} schema as JSON`} />
      </details>
    </div>
  );
}

function drawRow({ depth, name, type, isRequired, notes, description }: OutlineRow) {
  return (
    <div style={{ paddingInlineStart: `${depth * 1.125}rem` }}>
      <code>
        <bdi>{visibleText(name, 200)}</bdi>
      </code>{" "}
      <span class="toned accent">{visibleText(type, 1_500)}</span>
      {isRequired && <span class="toned bad"> required</span>}
      <span class="soft small">{visibleText(notes.map((note) => ` · ${note}`).join(""), 1_500)}</span>
      {description !== "" && (
        <div class="soft small">
          <MarkdownText text={description} most={400} />
        </div>
      )}
    </div>
  );
}

const MOST = 50;

/** Says who may call an operation, one sentence for each condition. */
export function accessWords({ access }: OperationView): readonly string[] {
  if (access === undefined) return ["Everybody who can reach the gateway."];
  const { allOf = [], anyOf = [] } = access.scopes ?? {};
  return [
    "Callers who say who they are.",
    ...(allOf.length > 0 ? [`They hold all scopes of ${listed(allOf)}.`] : []),
    ...(anyOf.length > 0 ? [`They hold at least one scope of ${listed(anyOf)}.`] : []),
    ...[access.resource ?? []]
      .flat()
      .slice(0, MOST)
      .map(
        (rule) => `They hold the ${textOf(rule, "type")} that the input names at ${textOf(rule, "pointer")}.`,
      ),
  ];
}

/** Says which plan an operation and its features need; nothing where every plan has them. */
export function planWords({ tier, features = [] }: OperationView): readonly string[] {
  return [
    ...(tier === undefined ? [] : [`Plan ${tier} or higher.`]),
    ...features
      .slice(0, MOST)
      .map((feature) => `Feature ${textOf(feature, "name")}: plan ${textOf(feature, "tier")} or higher.`),
  ];
}

const CLAIMS = [
  ["readOnly", "Only reads.", "Changes something."],
  ["destructive", "May destroy something.", "Destroys nothing."],
  ["idempotent", "Calling it again changes nothing more.", "Calling it again may do it again."],
  ["openWorld", "Reaches systems beyond its own.", "Stays within its own system."],
] as const;

/** Says in words what an operation claims of itself. */
export function annotationWords({ annotations = {} }: OperationView): readonly string[] {
  return CLAIMS.flatMap(([name, yes, no]) => {
    const claim = annotations[name];
    return claim === undefined ? [] : [claim ? yes : no];
  });
}

function listed(words: readonly string[]): string {
  return words.slice(0, MOST).join(", ") + (words.length > MOST ? ", …" : "");
}

function textOf(value: unknown, name: string): string {
  const member = ownOf(value, name);
  return typeof member === "string" ? member : "?";
}

/** The operations of the gateway: a list to search, and the one that is chosen, to be read and run. */
export function OperationsView({
  chosen,
  input,
}: {
  readonly chosen: string | undefined;
  readonly input: string | undefined;
}) {
  const { api } = useSession();
  const workspace = useWorkspace();
  const changes = useRevision("operations");
  const asked = useAsked((signal) => api.operations(signal), [api, changes]);
  const answer = asked.value ?? workspace.answer;
  workspace.answer = answer;
  const rows = answer?.operations;
  if (chosen !== undefined && input !== undefined) openFromLink(chosen, input);
  return (
    <div class={`split ${chosen === undefined ? "" : "has-chosen"}`}>
      <section class="list-side" aria-label="List of operations">
        <PendingNotice {...asked} value={rows} what="the operations" />
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
            // A link to the same operation with another input begins anew.
            key={`${chosen}\n${input ?? ""}`}
            id={chosen}
            row={rows?.find(({ id }) => id === chosen)}
            revision={answer?.revision}
          />
        )}
      </section>
    </div>
  );
}

/** One place of a schema, as people read it. */
interface OutlineRow {
  readonly depth: number;
  /** Empty for the schema itself. */
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly notes: readonly string[];
  readonly description: string;
}

interface Child {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired?: boolean;
}

interface Place extends Child {
  readonly depth: number;
  /** Where references led to on the way here; the same place again is a circle. */
  readonly passed: readonly unknown[];
}

const MOST_DEPTH = 12;

/** Reads a schema as an outline: what stands where, of which type, and what else is asked of it; at most so many rows. */
export function schemaOutline(schema: JsonSchemaView, most: number): readonly OutlineRow[] {
  const rows: OutlineRow[] = [];
  const open: Place[] = [{ name: "", schema, depth: 0, passed: [schema] }];
  for (let place = open.pop(); place !== undefined && rows.length < most; place = open.pop()) {
    const { name, depth, passed, isRequired = false } = place;
    const reference = ownOf(place.schema, "$ref");
    const target = typeof reference === "string" ? findReference(reference, schema) : place;
    const isEnd = target === undefined || passed.includes(target);
    const flat = flattenSchema(place.schema, schema);
    const notes = [...schemaNotes(flat?.keywords)];
    let below = flat === undefined || isEnd ? [] : childrenOf(flat.keywords, flat.choices, most);
    if (isEnd) notes.push(`see ${String(reference)}`);
    if (depth >= MOST_DEPTH && below.length > 0) {
      notes.push("deeper levels are in the JSON");
      below = [];
    }
    const type = flat?.choices.length ? "one of several forms" : schemaType(flat?.keywords);
    rows.push({ depth, name, type, isRequired, notes, description: textIn(flat?.keywords, name) });
    for (const child of below.reverse())
      open.push({ ...child, depth: depth + 1, passed: [...passed, target] });
  }
  return rows;
}

function childrenOf(keywords: FormObject, choices: readonly (readonly unknown[])[], most: number): Child[] {
  const required = new Set([ownOf(keywords, "required")].flat());
  const others = ownOf(keywords, "additionalProperties");
  const items = ownOf(keywords, "items");
  const first = ownOf(keywords, "prefixItems") ?? items;
  const tuple = listIn(first);
  return [
    ...entriesOf(keywords, "properties", most).map(([name, schema]) => ({
      name,
      schema,
      isRequired: required.has(name),
    })),
    ...entriesOf(keywords, "patternProperties", most).map(([name, schema]) => ({
      name: `names like ${name}`,
      schema,
    })),
    ...(isObject(others) ? [{ name: "any other name", schema: others }] : []),
    ...tuple.slice(0, most).map((schema, index) => ({ name: `item ${index + 1}`, schema })),
    ...(isObject(items) ? [{ name: "each item", schema: items }] : []),
    ...choices.flatMap((variants) => variants.slice(0, most).map(toVariant)),
  ];
}

function toVariant(schema: unknown, index: number): Child {
  const title = ownOf(schema, "title");
  return { name: `one of · ${typeof title === "string" ? title : index + 1}`, schema };
}

function entriesOf(keywords: FormObject, name: string, most: number): readonly [string, unknown][] {
  return Object.entries(membersIn(ownOf(keywords, name))).slice(0, most);
}

/** The description, or the title where that is all there is and the name does not say it. */
function textIn(keywords: FormObject = {}, name: string): string {
  const [title, description] = [ownOf(keywords, "title"), ownOf(keywords, "description")];
  if (typeof description === "string" && description !== "") return description;
  return typeof title === "string" && !name.endsWith(title) ? title : "";
}

const MOST_CHOICES = 12;
const MOST_CHARACTERS = 80;

const FLAGS = [
  ["additionalProperties", false, "no other members"],
  ["readOnly", true, "read only"],
  ["writeOnly", true, "write only"],
  ["deprecated", true, "deprecated"],
  ["nullable", true, "or null"],
] as const;

/** Says the type of what keywords take: `string`, `list of number`, `one of "a", "b"`; nothing is no value at all. */
export function schemaType(keywords: FormObject | undefined): string {
  if (keywords === undefined) return "nothing";
  if (Object.hasOwn(keywords, "const")) return `always ${shortJson(keywords["const"], MOST_CHARACTERS)}`;
  const choices = ownOf(keywords, "enum");
  if (Array.isArray(choices)) {
    const shown = choices.slice(0, MOST_CHOICES).map((choice) => shortJson(choice, MOST_CHARACTERS));
    const rest = choices.length - shown.length;
    return `one of ${shown.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  }
  const types = schemaTypes(keywords);
  return (types.length === 0 ? ["anything"] : types.slice(0, 8))
    .map((type) => (type === "array" ? listWords(keywords) : type.slice(0, MOST_CHARACTERS)))
    .join(" or ");
}

/** Says what else keywords ask for. */
export function schemaNotes(keywords: FormObject = {}): readonly string[] {
  return [
    ...hintsOf(keywords),
    ...FLAGS.filter(([name, value]) => ownOf(keywords, name) === value).map(([, , words]) => words),
  ];
}

function listWords(keywords: FormObject): string {
  const type = ownOf(ownOf(keywords, "items"), "type");
  return typeof type === "string" ? `list of ${type.slice(0, MOST_CHARACTERS)}` : "list";
}
