import { useEffect } from "preact/hooks";
import type { BusTraffic, SourceView } from "../../protocol.ts";
import { Facts } from "../parts/facts.tsx";
import { MoreList } from "../parts/more-list.tsx";
import { Empty, Pending } from "../parts/notice.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showBytes } from "../parts/show.ts";
import { toHash } from "../router.ts";
import { useSession } from "../session.ts";
import { SourceCard } from "./source-card.tsx";
import { BUS_END_WORDS, errorWords, summaryOf } from "./source-words.ts";
import { useSources } from "./use-sources.ts";
import "./sources.css";

/** Cards that are drawn at first, and more on demand. */
const FIRST = 60;
/** Sources that the summary points to. */
const MOST_LINKS = 20;

/** Where operations come from, and how each of these places is doing. */
export function SourcesView({ chosen }: { readonly chosen: string | undefined }) {
  const { hello } = useSession();
  const asked = useSources();
  const { value, again } = asked;
  const sources = value?.sources ?? [];
  const chosenAt = sources.findIndex(({ name }) => name === chosen);
  const first = Math.max(FIRST, chosenAt + 1);
  useEffect(() => focusCard(chosenAt), [chosenAt]);
  return (
    <div class="content stack sources">
      <Pending {...asked} what="the sources" />
      {value !== undefined && sources.length === 0 && (
        <Empty title="There are no sources">
          {hello.isOperator
            ? "Add an MCP server, an OpenAPI document or modules to the config."
            : "You may call nothing here. Ask for access."}
        </Empty>
      )}
      {sources.length > 0 && (
        <>
          <Summary sources={sources} />
          {chosen !== undefined && chosenAt < 0 && (
            <p class="notice warn" role="status">
              <span>
                There is no source called <PlainText text={chosen} most={100} /> here.
              </span>
            </p>
          )}
          <MoreList
            // The chosen one is drawn, wherever it stands.
            key={first}
            first={first}
            label="Sources"
            items={sources}
            draw={(source, index) => <SourceCard id={`source-${index}`} source={source} onRetried={again} />}
          />
        </>
      )}
      {value?.bus !== undefined && <BusCard traffic={value.bus} />}
    </div>
  );
}

/** What crossed the bus, each way. */
function BusCard({ traffic }: { readonly traffic: readonly BusTraffic[] }) {
  return (
    <article class="card stack" aria-labelledby="bus-traffic">
      <h3 id="bus-traffic">Bus traffic</h3>
      <div class="sides">
        {traffic.map(({ end, calls, errors, values, sentBytes, receivedBytes }) => (
          <section key={end} aria-label={BUS_END_WORDS[end]}>
            <p class="soft small">{BUS_END_WORDS[end]}</p>
            <Facts
              facts={[
                ["Calls", calls.toLocaleString("en")],
                ["Errors", errorWords({ count: calls, errors })],
                ["Stream values", values.toLocaleString("en")],
                ["Sent", showBytes(sentBytes)],
                ["Received", showBytes(receivedBytes)],
              ]}
            />
          </section>
        ))}
      </div>
    </article>
  );
}

function Summary({ sources }: { readonly sources: readonly SourceView[] }) {
  const links = (title: string, tone: string, isListed: (source: SourceView) => boolean) => {
    const listed = sources.filter(isListed);
    return (
      listed.length > 0 && (
        <p class="row">
          <strong class={`toned ${tone}`}>{title}:</strong>
          {listed.slice(0, MOST_LINKS).map((source) => (
            // Followed once more, the address stays what it is: the card is brought back all the same.
            <a
              key={source.name}
              href={toHash("sources", source.name)}
              onClick={() => focusCard(sources.indexOf(source))}
            >
              <PlainText text={source.name} most={60} />
            </a>
          ))}
          {listed.length > MOST_LINKS && `and ${listed.length - MOST_LINKS} more`}
        </p>
      )
    );
  };
  return (
    <header class="row">
      <h2>Sources</h2>
      <p>{summaryOf(sources)}</p>
      {links("Down", "bad", ({ state }) => state.status === "down")}
      {links("Not approved", "warn", ({ lock }) => (lock?.tools.length ?? 0) > 0)}
    </header>
  );
}

function focusCard(index: number): void {
  const card = document.getElementById(`source-${index}`);
  card?.scrollIntoView({ block: "start" });
  card?.focus({ preventScroll: true });
}
