import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Hello } from "../protocol.ts";
import { type Api, ApiError } from "./connection/api.ts";
import type { Live } from "./connection/live.ts";

/** What every view works with. */
export interface PageSession {
  readonly api: Api;
  readonly live: Live;
  readonly hello: Hello;
  /** Says something to people, screen readers included, for a moment. */
  readonly say: (message: string) => void;
}

export const SessionContext = createContext<PageSession | undefined>(undefined);

/** The session of the page; only within the app. */
export function useSession(): PageSession {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error("There is no session here.");
  return session;
}

/** What happens at the gateway; the component is drawn again when that changes. */
export function useLive(): Live {
  const { live } = useSession();
  useChanges(live);
  return live;
}

/** Draws the component again when something changes. */
export function useChanges(changing: Pick<Live, "onChange">): void {
  const [, draw] = useRedraw();
  useEffect(() => changing.onChange(draw), [changing]);
}

/** Counts, and draws the component again with each count. */
export function useRedraw(): readonly [turn: number, next: () => void] {
  const [turn, setTurn] = useState(0);
  return [turn, () => setTurn((count) => count + 1)];
}

/** Counts changes of the operations or the sources; calls that pass by draw nothing again. */
export function useRevision(of: "operations" | "sources"): number {
  const { live } = useSession();
  const [revision, setRevision] = useState(live[of]);
  useEffect(() => {
    const look = (): void => setRevision(live[of]);
    look();
    return live.onChange(look);
  }, [live]);
  return revision;
}

/** The present moment, drawn again as often as that. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** A text that goes away by itself, after so long. */
export function usePassing(ms: number): readonly [text: string, setText: (text: string) => void] {
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setText(""), ms);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}

/** Hears the keys of the whole page, for as long as `owner` is the same. */
export function useKeys(listen: (event: KeyboardEvent) => void, owner?: unknown): void {
  useEffect(() => {
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [owner]);
}

/** Something that is asked for: not there yet, there, or why not. While it is asked for again, what was there stays. */
export interface Asked<T> {
  readonly value: T | undefined;
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  readonly again: () => void;
}

/** Asks for something whenever `keys` change; what is no longer wanted is aborted. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Asked<T> {
  const [state, setState] = useState<Omit<Asked<T>, "again">>({
    value: undefined,
    error: undefined,
    isLoading: true,
  });
  const [turn, again] = useRedraw();
  useEffect(() => {
    const stop = new AbortController();
    setState((old) => ({ ...old, isLoading: true }));
    ask(stop.signal).then(
      (value) => {
        if (!stop.signal.aborted) setState({ value, error: undefined, isLoading: false });
      },
      (thrown: unknown) => {
        if (stop.signal.aborted) return;
        setState((old) => ({ ...old, error: toApiError(thrown), isLoading: false }));
      },
    );
    return () => stop.abort();
  }, [...keys, turn]);
  return { ...state, again };
}

/** Whatever was thrown, as an error that can be shown. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError(0, { code: "PAGE_ERROR", message });
}
