import "./resources.css";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { OffersAnswer, OfferTexts } from "../../protocol.ts";
import { type Asked, toApiError, useAsked, useRevision, useSession } from "../page-session.ts";
import { CopyButton, Empty, Facts, MoreList, PendingNotice } from "../parts/controls.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { MarkdownText } from "../parts/markdown-text.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showTime, visibleText } from "../parts/show.ts";
import { listIn, membersIn, shownText } from "../parts/show-json.ts";
import { ContentView } from "../result/content-view.tsx";
import { toHash } from "../router.ts";

/** The resources and prompts of MCP servers: a list, and the one that is chosen, to be read or filled in. */
export function ResourcesView({ chosen }: { readonly chosen: string | undefined }) {
  const { api } = useSession();
  const sources = useRevision("sources");
  const asked = useAsked((signal) => api.offers(signal), [api, sources]);
  const [query, setQuery] = useState("");
  const all = useMemo(() => offersIn(asked.value), [asked.value]);
  const words = query.toLowerCase().split(/\s+/);
  const found = all.filter(({ searched }) => words.every((word) => searched.includes(word)));
  const offer = all.find(({ key }) => key === chosen);
  return (
    <div class={`split ${chosen === undefined ? "" : "has-chosen"}`}>
      <section class="list-side" aria-label="List of resources and prompts">
        <PendingNotice {...asked} what="resources and prompts" />
        {asked.value !== undefined && (
          <>
            {all.length > 0 && (
              <search class="list-filters">
                <input
                  type="search"
                  aria-label="Search resources and prompts"
                  placeholder="Search resources and prompts"
                  maxLength={200}
                  value={query}
                  onInput={({ currentTarget }) => setQuery(currentTarget.value)}
                />
                <span class="soft small" role="status">
                  {found.length.toLocaleString("en")} of {all.length.toLocaleString("en")}
                </span>
              </search>
            )}
            <Failures answer={asked.value} />
            {all.length === 0 ? (
              <Empty title="No resources or prompts">
                <span>
                  None of the MCP servers here offers any. See <a href={toHash("sources")}>Sources</a>.
                </span>
              </Empty>
            ) : (
              <div class="offers">
                {KINDS.map(([kind, title]) => (
                  <Group
                    key={kind}
                    title={title}
                    offers={found.filter((one) => one.kind === kind)}
                    chosen={chosen}
                  />
                ))}
              </div>
            )}
          </>
        )}
      </section>
      <section class="detail-side" aria-label="Resource or prompt" tabIndex={-1}>
        {offer !== undefined ? (
          <OfferDetail key={offer.key} offer={offer} />
        ) : (
          asked.value !== undefined &&
          all.length > 0 && (
            <Empty
              title={chosen === undefined ? "Choose a resource or a prompt" : "It is not there any more."}
            >
              <span>To read it here, follow its changes, or fill it in.</span>
            </Empty>
          )
        )}
      </section>
    </div>
  );
}

const KINDS = [
  ["resource", "Resources"],
  ["template", "Resource templates"],
  ["prompt", "Prompts"],
] as const;

function Failures({ answer }: { readonly answer: OffersAnswer }) {
  return (
    <>
      {answer.sources.map(
        ({ source, error, more }) =>
          (error !== undefined || more > 0) && (
            <p key={source} class={`notice small ${error === undefined ? "" : "bad"}`}>
              <span>
                <strong>{visibleText(source, 100)}</strong>:{" "}
                {error === undefined ? (
                  `${more.toLocaleString("en")} more are not listed.`
                ) : (
                  <PlainText text={error.message} most={300} />
                )}
              </span>
            </p>
          ),
      )}
    </>
  );
}

function Group({
  title,
  offers,
  chosen,
}: {
  readonly title: string;
  readonly offers: readonly Offer[];
  readonly chosen: string | undefined;
}) {
  if (offers.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2 class="source-head">
        {title} <span class="soft small">{offers.length.toLocaleString("en")}</span>
      </h2>
      <MoreList
        label={title}
        first={100}
        items={offers}
        draw={({ key, name, source, place, description = "" }) => (
          <a
            class="operation-line"
            href={toHash("resources", key)}
            aria-current={key === chosen ? "true" : undefined}
          >
            <span class="row-top">
              <span class="cut">{visibleText(name, 200)}</span>
              <span class="soft small">{visibleText(source, 60)}</span>
            </span>
            {place === name ? (
              <span class="cut soft small">{visibleText(description, 300)}</span>
            ) : (
              <span class="cut soft small mono">{visibleText(place, 300)}</span>
            )}
          </a>
        )}
      />
    </section>
  );
}

function OfferDetail({ offer }: { readonly offer: Offer }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const { name, title, kind, source, description, mimeType, place } = offer;
  return (
    <div class="stack operation">
      <a class="only-narrow" href={toHash("resources")}>
        ← Back to the list
      </a>
      <header class="operation-head stack tight">
        <h2 class="break" tabIndex={-1} ref={heading}>
          <bdi>{visibleText(title ?? name, 300)}</bdi>
        </h2>
        <Facts
          facts={[
            ["Source", <a href={toHash("sources", source)}>{visibleText(source, 100)}</a>],
            [kind === "prompt" ? "Name" : "Address", place],
            ["Type", mimeType],
          ]}
        />
        {description !== undefined && <MarkdownText text={description} />}
      </header>
      {kind === "prompt" ? (
        <Prompt offer={offer} />
      ) : kind === "template" ? (
        <Template offer={offer} />
      ) : (
        <Resource offer={offer} uri={place} />
      )}
    </div>
  );
}

/** Reads a resource at once, and again on demand; follows its changes where the server tells of them. */
function Resource({ offer: { source, canFollow }, uri }: { readonly offer: Offer; readonly uri: string }) {
  const { api } = useSession();
  const asked = useAsked((signal) => api.readResource({ source, uri }, signal), [api, source, uri]);
  return (
    <div class="stack">
      <div class="row">
        <button type="button" class="primary" onClick={asked.again} aria-disabled={asked.isLoading}>
          Read again
        </button>
        <CopyButton label="Copy address" what="the address of the resource" text={() => uri} />
        {canFollow && <Follow source={source} uri={uri} onUpdate={asked.again} />}
      </div>
      <Answered asked={asked} what="the resource">
        {(value) => (
          <ContentView
            blocks={listIn(value["contents"]).map((resource) => ({ type: "resource", resource }))}
          />
        )}
      </Answered>
    </div>
  );
}

function Follow(props: { readonly source: string; readonly uri: string; readonly onUpdate: () => void }) {
  const { source, uri, onUpdate } = props;
  const { api } = useSession();
  const [isOn, setOn] = useState(false);
  const [said, setSaid] = useState("");
  const update = useRef(onUpdate);
  update.current = onUpdate;
  useEffect(() => {
    if (!isOn) return undefined;
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      for await (const event of api.follow({ source, uri }, stop.signal)) {
        setSaid(event.type === "following" ? "Subscribed." : `Changed at ${showTime(event.at).slice(0, 8)}.`);
        if (event.type === "updated") update.current();
      }
      setSaid("The subscription has ended.");
      setOn(false);
    };
    follow().catch((thrown: unknown) => {
      if (stop.signal.aborted) return;
      setSaid(toApiError(thrown).message);
      setOn(false);
    });
    return () => stop.abort();
  }, [isOn, source, uri]);
  return (
    <>
      <button type="button" aria-pressed={isOn} onClick={() => setOn(!isOn)}>
        {isOn ? "Unsubscribe" : "Subscribe"}
      </button>
      <span class="soft small break" role="status">
        {said}
      </span>
    </>
  );
}

function Template({ offer }: { readonly offer: Offer }) {
  const [uri, setUri] = useState<string>();
  const variables = useMemo(() => variablesIn(offer.place), [offer.place]);
  return (
    <div class="stack">
      <Arguments
        offer={offer}
        action="Read"
        fields={variables.map((name) => ({ name, required: true }))}
        onDone={(given) => setUri(expandTemplate(offer.place, given))}
      />
      {uri !== undefined && (
        <>
          <code class="break">{visibleText(uri, 2_000)}</code>
          <Resource key={uri} offer={offer} uri={uri} />
        </>
      )}
    </div>
  );
}

function Prompt({ offer }: { readonly offer: Offer }) {
  const { api } = useSession();
  const { source, name, fields } = offer;
  const [given, setGiven] = useState<Readonly<Record<string, string>>>();
  const asked = useAsked(
    async (signal) =>
      given === undefined ? undefined : await api.prompt({ source, name, arguments: given }, signal),
    [api, given],
  );
  return (
    <div class="stack">
      <Arguments offer={offer} action="Fill in" fields={fields} onDone={setGiven} />
      {given !== undefined && (
        <Answered asked={asked} what="the prompt">
          {(value) =>
            listIn(value["messages"]).map((message, index) => {
              const { role, content } = membersIn(message);
              return (
                <section key={index} class="card stack tight" aria-label={`Message ${index + 1}`}>
                  <strong class="small soft">{visibleText(shownText(role), 40)}</strong>
                  <ContentView blocks={Array.isArray(content) ? content : [content]} />
                </section>
              );
            })
          }
        </Answered>
      )}
    </div>
  );
}

interface Field {
  readonly name: string;
  readonly description?: string;
  readonly required?: true;
}

/** A field for each argument, with the server's suggestions where it makes any. */
function Arguments(props: {
  readonly offer: Offer;
  readonly action: string;
  readonly fields: readonly Field[];
  readonly onDone: (given: Readonly<Record<string, string>>) => void;
}) {
  const { offer, action, fields, onDone } = props;
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const submit = (event: Event): void => {
    event.preventDefault();
    onDone(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")));
  };
  return (
    <form class="card stack" onSubmit={submit}>
      {fields.length === 0 && <p class="soft small">It takes no arguments.</p>}
      {fields.map((field) => (
        <ArgumentField
          key={field.name}
          field={field}
          offer={offer}
          values={values}
          onInput={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
      <div class="row">
        <button type="submit" class="primary">
          {action}
        </button>
      </div>
    </form>
  );
}

const SUGGEST_MS = 250;

function ArgumentField(props: {
  readonly field: Field;
  readonly offer: Offer;
  readonly values: Readonly<Record<string, string>>;
  readonly onInput: (value: string) => void;
}) {
  const { field, offer, values, onInput } = props;
  const { name, description = "", required } = field;
  const { api } = useSession();
  const [suggested, setSuggested] = useState<readonly string[]>([]);
  const value = values[name] ?? "";
  const [isTouched, setTouched] = useState(false);
  useEffect(() => {
    if (!offer.canComplete || !isTouched) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const { [name]: _, ...given } = values;
      const ref =
        offer.kind === "prompt"
          ? ({ type: "ref/prompt", name: offer.name } as const)
          : ({ type: "ref/resource", uri: offer.place } as const);
      api.complete({ source: offer.source, ref, argument: { name, value }, given }, stop.signal).then(
        ({ values: found }) => setSuggested(found),
        () => setSuggested([]),
      );
    }, SUGGEST_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [value, isTouched]);
  const id = `argument-${name}`;
  return (
    <label class="stack tight">
      <span>
        <strong>{visibleText(name, 200)}</strong>{" "}
        <span class="soft small">{required ? "required" : "optional"}</span>
      </span>
      {description !== "" && (
        <span class="soft small">
          <PlainText text={description} most={500} />
        </span>
      )}
      <input
        list={id}
        value={value}
        required={required === true}
        autocomplete="off"
        onFocus={() => setTouched(true)}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <datalist id={id}>
        {suggested.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </label>
  );
}

function Answered(props: {
  readonly asked: Asked<unknown>;
  readonly what: string;
  readonly children: (value: Readonly<Record<string, unknown>>) => ComponentChildren;
}) {
  const { asked, what, children } = props;
  return (
    <>
      <PendingNotice {...asked} what={what} />
      {asked.value !== undefined && asked.error === undefined && (
        <section class="stack" aria-label="Answer">
          {children(membersIn(asked.value))}
          <details>
            <summary>Answer as JSON</summary>
            <JsonTree value={asked.value} label="Answer as JSON" />
          </details>
        </section>
      )}
    </>
  );
}

/** A resource, a template of resources or a prompt, as the page lists it. */
interface Offer extends OfferTexts {
  readonly kind: "resource" | "template" | "prompt";
  /** Tells it from all others, in the address of the page. */
  readonly key: string;
  readonly source: string;
  /** Its address, its template, or its name. */
  readonly place: string;
  readonly fields: OffersAnswer["sources"][number]["prompts"][number]["arguments"];
  readonly canFollow: boolean;
  readonly canComplete: boolean;
  /** What is searched, in lower case. */
  readonly searched: string;
}

const MOST_SEARCHED = 1_000;

/** Lists what sources offer. */
export function offersIn(answer: OffersAnswer | undefined): readonly Offer[] {
  return (answer?.sources ?? []).flatMap((from) => {
    const { source, canFollow = false, canComplete = false } = from;
    const toOffer = (
      { kind, place, fields = [] }: Pick<Offer, "kind" | "place"> & Partial<Pick<Offer, "fields">>,
      one: Pick<Offer, "name" | "title" | "description" | "mimeType">,
    ): Offer => {
      const { name, title, description, mimeType } = one;
      const searched = [name, title, place, source, description]
        .join("\n")
        .slice(0, MOST_SEARCHED)
        .toLowerCase();
      return {
        kind,
        key: `${kind}/${source}/${place}`,
        source,
        name,
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description }),
        ...(mimeType !== undefined && { mimeType }),
        place,
        fields,
        canFollow,
        canComplete,
        searched,
      };
    };
    return [
      ...from.resources.map((one) => toOffer({ kind: "resource", place: one.uri }, one)),
      ...from.templates.map((one) => toOffer({ kind: "template", place: one.uriTemplate }, one)),
      ...from.prompts.map((one) => toOffer({ kind: "prompt", place: one.name, fields: one.arguments }, one)),
    ];
  });
}

/** An expression of a URI template (RFC 6570): an operator, and names with or without modifiers. */
const EXPRESSION = /\{([+#./;?&]?)([^{}]{1,500})\}/g;
const MOST_VARIABLES = 50;
/** Half a character, which no address can hold. */
const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Finds the names of the variables of a template, each once. */
export function variablesIn(template: string): readonly string[] {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list = ""]) => list.split(",").map(nameOf));
  return [...new Set(names)].filter((name) => name !== "").slice(0, MOST_VARIABLES);
}

/** Puts texts in the place of variables; those that are not given are left out. */
export function expandTemplate(template: string, given: Readonly<Record<string, string>>): string {
  return template.replace(EXPRESSION, (_, operator: string, list: string) => {
    const encode = operator === "+" || operator === "#" ? encodeURI : encodeURIComponent;
    const isNamed = operator === ";" || operator === "?" || operator === "&";
    const parts = list.split(",").flatMap((variable) => {
      const name = nameOf(variable);
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      if (value === undefined) return [];
      return [
        isNamed
          ? `${name}=${encode(value.replace(LONE_SURROGATE, "\ufffd"))}`
          : encode(value.replace(LONE_SURROGATE, "\ufffd")),
      ];
    });
    if (parts.length === 0) return "";
    const between =
      operator === "" || operator === "+" || operator === "#" ? "," : operator === "?" ? "&" : operator;
    const before = operator === "+" ? "" : operator;
    return before + parts.join(between);
  });
}

function nameOf(variable: string): string {
  return variable.replace(/\*$|:\d{1,4}$/, "").trim();
}
