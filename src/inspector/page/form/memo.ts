import { Component, type ComponentChild, type FunctionComponent, h } from "preact";

/** Draws a component again only when its properties change: a form of 500 fields is typed into one at a time. */
export function memo<P extends object>(draw: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const now: object = this.props;
      return Object.entries(next).some(([name, value]) => Reflect.get(now, name) !== value);
    }

    override render(): ComponentChild {
      return h(draw, this.props);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
