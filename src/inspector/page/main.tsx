import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import { type ComponentChildren, render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Hello } from "../protocol.ts";
import { historyOf } from "./calls/call-history.ts";
import { Api, type ApiError } from "./connection/api.ts";
import { Live, type LiveStatus } from "./connection/live.ts";
import { browserStore } from "./operations/input-history.ts";
import { OperationsView } from "./operations/operations-view.tsx";
import {
  type PageSession,
  SessionContext,
  toApiError,
  useAsked,
  useLive,
  usePassing,
  useSession,
} from "./page-session.ts";
import { Badge, PendingNotice, type Tone } from "./parts/controls.tsx";
import { titled } from "./parts/show.ts";
import { decode, type PageRoute, toHash, useRoute, VIEWS } from "./router.ts";
import { StartView } from "./start/start-view.tsx";

const SAID_MS = 3_000;

/** The whole page: who may look, then the views. */
function App() {
  const [token, setToken] = useState(readToken);
  const api = useMemo(() => new Api(token), [token]);
  const [hello, setHello] = useState<Hello>();
  const [error, setError] = useState<ApiError>();
  const ask = (): void => {
    setError(undefined);
    api.hello().then(setHello, (thrown: unknown) => setError(toApiError(thrown)));
  };
  useEffect(ask, [api]);
  const enter = (given: string): void => {
    keepToken(given);
    setToken(given);
  };
  if (error?.status === 401) return <TokenGate isWrong={token !== undefined} onToken={enter} />;
  if (error !== undefined || hello === undefined) {
    return (
      <main class="content">
        <PendingNotice value={hello} error={error} again={ask} what="the gateway" />
      </main>
    );
  }
  const leave = (): void => {
    keepToken(undefined);
    setHello(undefined);
    setToken(undefined);
  };
  return <Views api={api} hello={hello} onLeave={leave} />;
}

function Views({
  api,
  hello,
  onLeave,
}: {
  readonly api: Api;
  readonly hello: Hello;
  readonly onLeave: () => void;
}) {
  const live = useMemo(() => {
    const fresh = new Live(api);
    // Counts calls from the start, whichever view is shown.
    historyOf(fresh);
    return fresh;
  }, [api]);
  useEffect(() => live.start(), [live]);
  const [said, say] = usePassing(SAID_MS);
  const session = useMemo<PageSession>(() => ({ api, live, hello, say }), [api, live, hello, say]);
  const route = useRoute();
  useEffect(() => {
    document.title = `${titleOf(route)} · ${hello.name} · Waybill inspector`;
  }, [route, hello]);
  return (
    <SessionContext.Provider value={session}>
      <div class="page">
        <Bar route={route} onLeave={onLeave} />
        <main class="view" id="view" tabIndex={-1}>
          <View route={route} />
        </main>
      </div>
      <div class="says" role="status" aria-live="polite">
        {said}
      </div>
    </SessionContext.Provider>
  );
}

function View({ route: { view, chosen, input } }: { readonly route: PageRoute }) {
  switch (view) {
    case "home":
      return <StartView />;
    case "operations":
      return <OperationsView chosen={chosen} input={input} />;
    case "resources":
      return <Lazy load={resources} chosen={chosen} />;
    case "calls":
      return <Lazy load={calls} chosen={chosen} />;
    case "sources":
      return <Lazy load={sources} chosen={chosen} />;
    case "approvals":
      return <Lazy load={approvals} chosen={chosen} />;
    case "decode":
      return <Lazy load={decodeView} chosen={chosen} />;
  }
}

type View = (props: { readonly chosen: string | undefined }) => ComponentChildren;

/** Views beyond the first ones are loaded when they are opened. */
const calls = async (): Promise<View> => (await import("./calls/calls-view.tsx")).CallsView;
const sources = async (): Promise<View> => (await import("./sources/sources-view.tsx")).SourcesView;
const resources = async (): Promise<View> => (await import("./resources/resources-view.tsx")).ResourcesView;
const approvals = async (): Promise<View> => (await import("./approvals/approvals-view.tsx")).ApprovalsView;
const decodeView = async (): Promise<View> => (await import("./decode/decode-view.tsx")).DecodeView;

function Lazy({ load, chosen }: { readonly load: () => Promise<View>; readonly chosen: string | undefined }) {
  const asked = useAsked(load, [load]);
  const Loaded = asked.value;
  return Loaded === undefined ? (
    <div class="content">
      <PendingNotice {...asked} what="the view" />
    </div>
  ) : (
    <Loaded chosen={chosen} />
  );
}

function titleOf({ view, chosen }: PageRoute): string {
  return chosen === undefined ? titled(view) : `${chosen} · ${titled(view)}`;
}

/** Asks for a token before anything else is shown. */
function TokenGate({
  isWrong,
  onToken,
}: {
  /** Whether one was given that the gateway does not know. */
  readonly isWrong: boolean;
  readonly onToken: (token: string) => void;
}) {
  const [token, setToken] = useState("");
  const enter = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== "") onToken(token.trim());
  };
  return (
    <main class="content gate">
      <form class="card stack" onSubmit={enter}>
        <div class="brand">
          <Logo />
          <h1>Waybill inspector</h1>
        </div>
        <p>
          Enter a token from the config of the gateway (<code>serve.auth.tokens</code>), or open the address
          that <code>waybill inspect</code> printed.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            aria-invalid={isWrong}
            aria-describedby="token-wrong"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {isWrong && (
          <p id="token-wrong" role="alert" class="notice bad">
            The gateway does not know this token.
          </p>
        )}
        <div class="row">
          <button type="submit" class="primary" disabled={token.trim() === ""}>
            Enter
          </button>
        </div>
      </form>
    </main>
  );
}

const KEY = "waybill.token";

/** The token this tab was given; it is forgotten with the tab. */
function readToken(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return held;
  }
}

/** Keeps a token for this tab. */
function keepToken(token: string | undefined): void {
  held = token;
  try {
    if (token === undefined) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  } catch {
    // Kept in memory alone.
  }
}

/** Takes over a token from `#token=…`, and out of the address, so that it is neither seen nor shared. */
function takeTokenFromAddress(): void {
  const [, token] = /^#token=([^&]+)/.exec(location.hash) ?? [];
  if (token === undefined) return;
  keepToken(decode(token));
  history.replaceState(null, "", location.pathname + location.search);
}

let held: string | undefined;

/** What stands above every view: the gateway, the views, whether the page hears what happens, the theme. */
function Bar({ route, onLeave }: { readonly route: PageRoute; readonly onLeave: () => void }) {
  const { hello } = useSession();
  const views = useRef<HTMLElement>(null);
  // On a narrow screen the list of views scrolls: the one that is shown is to be seen.
  useEffect(() => {
    views.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [route.view]);
  return (
    <header class="bar">
      <button type="button" class="hidden-text" onClick={skip}>
        Skip to the view
      </button>
      <div class="brand">
        <Logo />
        <h1 class="name cut" title={hello.name}>
          {hello.name}
        </h1>
        <span class="soft small">{hello.version}</span>
      </div>
      <nav aria-label="Views" ref={views}>
        <ul>
          {VIEWS.filter((view) => view !== "approvals" || hello.hasApprovals).map((view) => (
            <li key={view}>
              <a href={toHash(view)} aria-current={route.view === view ? "page" : undefined}>
                {titled(view)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="aside">
        <LiveBadge />
        {hello.isAuthOn && (
          <button type="button" class="quiet" onClick={onLeave} title="Forget the token of this tab">
            {hello.subject ?? "Token"} · leave
          </button>
        )}
        <ThemeChoice />
      </div>
    </header>
  );
}

function skip(): void {
  document.getElementById("view")?.focus();
}

const STATES: Readonly<Record<LiveStatus, readonly [Tone, string, string]>> = {
  connecting: ["plain", "connecting", "Asking the gateway."],
  open: ["ok", "live", "Calls are shown as they happen."],
  lost: ["bad", "lost", "The gateway does not answer; trying again."],
  refused: ["bad", "refused", "The gateway refuses this token. Leave and enter another."],
};

function LiveBadge() {
  const { status } = useLive();
  const [tone, word, meaning] = STATES[status];
  return (
    <span role="status">
      <Badge tone={tone} title={meaning} sign="●">
        {word}
      </Badge>
    </span>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(readTheme);
  const choose = (event: Event): void => {
    const wanted = (event.currentTarget as HTMLSelectElement).value as Theme;
    applyTheme(wanted);
    setTheme(wanted);
  };
  return (
    <label>
      <span class="hidden-text">Theme</span>
      <select value={theme} onChange={choose}>
        {THEMES.map((known) => (
          <option key={known} value={known}>
            {titled(known)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The mark of the project. */
function Logo() {
  return (
    <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#1f5eff" />
      <path
        d="M7 10l3.5 12L16 12l5.5 10L25 10"
        fill="none"
        stroke="#fff"
        stroke-width="2.8"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** How the page looks; `auto` follows the system. */
type Theme = "auto" | "light" | "dark";

const THEME_KEY = "waybill.theme";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];

/** The theme that was chosen last. */
function readTheme(): Theme {
  const kept = browserStore("localStorage")?.getItem(THEME_KEY);
  return THEMES.find((theme) => theme === kept) ?? "auto";
}

/** Shows a theme, and remembers it. */
function applyTheme(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === "auto" ? "" : theme;
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // A browser that keeps nothing.
  }
}

applyTheme(readTheme());
takeTokenFromAddress();
const root = document.getElementById("page");
if (root !== null) render(<App />, root);
