import { Listeners } from "../../core/collections/listeners.ts";
import type { OnWire, WireEvent } from "../../mcp/channels/channel.ts";

/** What passes between a gateway and one of its MCP servers: a message each way, or a line of standard error. */
export interface SourceWire {
  /** The name of the source. */
  readonly source: string;
  /** Unix epoch milliseconds. */
  readonly at: number;
  /** As it passed: it may hold secrets. */
  readonly event: WireEvent;
  /** Takes the credentials of the source, and those it was given meanwhile, out of a text. */
  mask(text: string): string;
}

/** Lines of standard error that are held of each source, for those who begin to watch later. */
const HELD_LINES = 50;
/** Characters of such a line. */
const HELD_CHARACTERS = 2_000;

/** Tells what passes between a gateway and its MCP servers to those who watch. Without a watcher nothing but the last lines of standard error is held. */
export class SourceTraffic {
  readonly #watchers = new Listeners<SourceWire>();
  /** Checked before each message, so that no event is made while there is no watcher. */
  readonly #watch = { isOn: false };
  readonly #held = new Map<string, SourceWire[]>();

  /** Hears what passes from now on, and first the last lines of standard error; returns how to stop. */
  watch(watcher: (wire: SourceWire) => void): () => void {
    for (const lines of this.#held.values()) for (const line of lines) watcher(line);
    const stop = this.#watchers.add(watcher);
    this.#watch.isOn = true;
    return () => {
      stop();
      this.#watch.isOn = this.#watchers.size > 0;
    };
  }

  /** Makes what a connection to a source tells its traffic with. */
  tellerOf(source: string): OnWire {
    const tell: OnWire = (event, mask) => {
      if (this.#watchers.size === 0 && event.type !== "stderr") return;
      const wire = { source, at: Date.now(), event, mask };
      if (event.type === "stderr") this.#hold(wire, event.line);
      this.#watchers.tell(wire);
    };
    return Object.assign(tell, { watch: this.#watch });
  }

  /** The last lines of standard error of a source, oldest first, without its credentials. */
  lastLines(source: string): readonly string[] {
    const lines = (this.#held.get(source) ?? []).map(({ event, mask }) =>
      event.type === "stderr" ? mask(event.line) : "",
    );
    return lines.filter((line) => line.trim() !== "");
  }

  /** Lets go of what is held of sources that are no more. */
  keepOnly(sources: ReadonlySet<string>): void {
    for (const name of this.#held.keys()) if (!sources.has(name)) this.#held.delete(name);
  }

  /** A longer line is not held at all: cut, it might hold the half of a secret. */
  #hold(wire: SourceWire, line: string): void {
    if (line.length > HELD_CHARACTERS) return;
    const lines = this.#held.get(wire.source) ?? [];
    this.#held.set(wire.source, lines);
    lines.push(wire);
    if (lines.length > HELD_LINES) lines.shift();
  }
}
