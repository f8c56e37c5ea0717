import { useEffect, useRef } from "preact/hooks";
import type { SourcesAnswer } from "../../protocol.ts";
import { type Asked, useAsked, useRevision, useSession } from "../session.ts";

/** How often they are asked for again: latencies change, and tools are approved elsewhere. */
const AGAIN_MS = 5_000;

/** The sources: asked for again when they change, and now and then while they are looked at. */
export function useSources(): Asked<SourcesAnswer> {
  const { api } = useSession();
  const revision = useRevision("sources");
  const asked = useAsked((signal) => api.sources(signal), [api, revision]);
  const again = useRef(asked.again);
  again.current = asked.again;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) again.current();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return asked;
}
