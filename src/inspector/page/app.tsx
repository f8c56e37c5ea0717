import { useEffect, useMemo, useState } from "preact/hooks";
import type { Hello } from "../protocol.ts";
import { Bar } from "./bar.tsx";
import { historyOf } from "./calls/call-history.ts";
import { CallsView } from "./calls/calls-view.tsx";
import { Api, type ApiError } from "./connection/api.ts";
import { Live } from "./connection/live.ts";
import { keepToken, readToken } from "./connection/token.ts";
import { DecodeView } from "./decode/decode-view.tsx";
import { OperationsView } from "./operations/operations-view.tsx";
import { Pending } from "./parts/notice.tsx";
import { titled } from "./parts/show.ts";
import { type Route, useRoute } from "./router.ts";
import { type Session, SessionContext, toApiError, usePassing } from "./session.ts";
import { SourcesView } from "./sources/sources-view.tsx";
import { TokenGate } from "./token-gate.tsx";

const SAID_MS = 3_000;

/** The whole page: who may look, then the views. */
export function App() {
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
        <Pending value={hello} error={error} again={ask} what="the gateway" />
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
  const session = useMemo<Session>(() => ({ api, live, hello, say }), [api, live, hello, say]);
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

function View({ route: { view, chosen } }: { readonly route: Route }) {
  switch (view) {
    case "operations":
      return <OperationsView chosen={chosen} />;
    case "calls":
      return <CallsView chosen={chosen} />;
    case "sources":
      return <SourcesView chosen={chosen} />;
    case "decode":
      return <DecodeView />;
  }
}

function titleOf({ view, chosen }: Route): string {
  return chosen === undefined ? titled(view) : `${chosen} · ${titled(view)}`;
}
