import { useEffect } from "preact/hooks";
import { useSession, useTurns } from "../session.ts";

const LEAST_MS = 250;

/** Draws the component again when something happens, at most four times a second, and every second while nothing does. */
export function useBeat(): void {
  const { live } = useSession();
  const [, draw] = useTurns();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const beat = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        draw();
      }, LEAST_MS);
    };
    const stop = live.onChange(beat);
    const idle = setInterval(beat, 1_000);
    return () => {
      stop();
      clearInterval(idle);
      clearTimeout(timer);
    };
  }, [live]);
}
