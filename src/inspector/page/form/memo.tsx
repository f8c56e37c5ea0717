import type { FunctionComponent } from "preact";
import { useMemo } from "preact/hooks";

/** Draws a component again only when its properties change: a form of 500 fields is typed into one at a time. */
export function memo<P extends object>(Draw: FunctionComponent<P>): FunctionComponent<P> {
  return (props) => useMemo(() => <Draw {...props} />, Object.values(props));
}
