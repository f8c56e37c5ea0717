import { useEffect, useState } from "preact/hooks";
import type { DecodeAnswer } from "../../protocol.ts";
import type { Api } from "../connection/api.ts";
import { toApiError, useSession } from "../session.ts";
import { type GivenText, sentBytes, tooLong } from "./given-text.ts";

const WAIT_MS = 300;

interface Draft {
  readonly given: GivenText;
  /** What became of a text; the one it belongs to tells whether that is still wanted. */
  readonly found?: { readonly given: GivenText; readonly answer?: DecodeAnswer; readonly error?: string };
}

/** Kept while other views are shown, in memory alone, and gone with whoever looked: another token has another draft. */
const DRAFTS = new WeakMap<Api, Draft>();

/** A text, and what it turned out to be. */
export interface Decoded {
  readonly given: GivenText;
  readonly give: (given: GivenText) => void;
  /** Of the last text that could be read; it stays while another one is read. */
  readonly answer: DecodeAnswer | undefined;
  /** Why the text cannot be read. */
  readonly error: string | undefined;
  readonly isBusy: boolean;
}

/** Decodes a text as it is typed, a moment after the last key; a newer text ends the reading of the older one. */
export function useDecoded(): Decoded {
  const { api } = useSession();
  const [draft, setDraft] = useState<Draft>(() => DRAFTS.get(api) ?? { given: { text: "" } });
  DRAFTS.set(api, draft);
  const { given, found } = draft;
  const isEmpty = given.text.trim() === "";
  const isBusy = !isEmpty && found?.given !== given;
  useEffect(() => {
    if (!isBusy) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      const outcome = await read(api, given.text, stop.signal);
      if (!stop.signal.aborted) setDraft({ given, found: { given, ...outcome } });
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [api, given, isBusy]);
  return {
    given,
    give: (next) => setDraft((old) => ({ ...old, given: next })),
    answer: isEmpty ? undefined : found?.answer,
    error: given.refused ?? (isEmpty || isBusy ? undefined : found?.error),
    isBusy,
  };
}

async function read(
  api: Api,
  text: string,
  signal: AbortSignal,
): Promise<{ readonly answer: DecodeAnswer } | { readonly error: string }> {
  const error = tooLong("The text", sentBytes(text));
  if (error !== undefined) return { error };
  try {
    return { answer: await api.decode(text, signal) };
  } catch (thrown) {
    return { error: toApiError(thrown).message };
  }
}
