import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { Subjects } from "./subjects.ts";
import type { Transport } from "./transport.ts";

/** A call whose other end is a peer. */
export interface PeerLine {
  lost(error: CallError): void;
}

/** Milliseconds between signs of life of those who say nothing else, members of version 0.1.0 among them. */
export const BEAT_MS = 2_000;

/** What a bus may be told, and the most that is believed of another: one that beats less often could never be missed. */
export const BEAT_RANGE_MS = { least: 10, most: 60_000 } as const;

/** Beats that may be missed before a peer counts as gone. */
const MISSED_BEATS = 3.5;

/** Beats after which this side itself is late. */
const LATE_BEATS = 1.5;

const SERVICE_BEAT = Uint8Array.of(1);
const PLAIN_BEAT = new Uint8Array();

interface Peer {
  heardAt: number;
  /** The slower beat of the two ends. */
  beatMs: number;
  readonly lines: Set<PeerLine>;
}

/** Who else is on the bus and alive: each side says so now and then while the other may be waiting for it. */
export class Peers {
  /** Others reach this side by it: its user, and the last part of its inbox, which is made anew with every bus. */
  readonly ownAddress: string;
  /** Set while this side can be found by others, who want to know when it is gone. */
  isService = false;
  readonly #transport: Transport;
  readonly #subjects: Subjects;
  readonly #beatMs: number;
  readonly #tracked = new Map<string, Peer>();
  readonly #onTick: () => boolean;
  #onServiceBeat: ((address: string) => void) | undefined;
  #tickedAt = monotonicNow();
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #stopHearing: () => void;

  /** `onTick` is called with every beat and tells whether anybody may be waiting. */
  constructor(
    transport: Transport,
    subjects: Subjects,
    { beatMs, onTick }: { readonly beatMs: number; readonly onTick: () => boolean },
  ) {
    this.ownAddress = subjects.address(lastPart(transport.inbox));
    this.#transport = transport;
    this.#subjects = subjects;
    this.#beatMs = beatMs;
    this.#onTick = onTick;
    const heard = transport.subscribe(subjects.beat("*.*"), ({ subject, data }) => {
      this.#hear(subject.slice(subjects.beat("").length), data.length > 0);
    });
    const stopReconnect = transport.onReconnect(() => this.#forgive());
    this.#stopHearing = () => {
      heard.stop();
      stopReconnect();
    };
    this.#timer = setInterval(() => this.#tick(), beatMs);
    (this.#timer as { unref?: () => void }).unref?.();
  }

  /** How often this side beats, for a message that the other end reads; nothing where that is what everybody expects. */
  get ownBeat(): { readonly beatMs?: number } {
    return this.#beatMs === BEAT_MS ? {} : { beatMs: this.#beatMs };
  }

  /** The beat that both ends can keep, by what the other one says: the slower of the two. */
  agreeWith(saidMs: number = BEAT_MS): number {
    return Math.max(this.#beatMs, Math.min(saidMs, BEAT_RANGE_MS.most));
  }

  /** Whether another expects to hear of this side more often than it beats by itself. */
  isSlowFor(saidMs: number = BEAT_MS): boolean {
    return saidMs < this.#beatMs;
  }

  /** Tells a line when its peer has not been heard of for too long, by the beat agreed with it. */
  track(address: string, line: PeerLine, beatMs: number = this.#beatMs): void {
    const peer = this.#tracked.get(address) ?? { heardAt: monotonicNow(), beatMs, lines: new Set() };
    this.#tracked.set(address, peer);
    peer.beatMs = Math.max(peer.beatMs, beatMs);
    peer.lines.add(line);
  }

  untrack(address: string, line: PeerLine): void {
    const peer = this.#tracked.get(address);
    if (peer?.lines.delete(line) && peer.lines.size === 0) this.#tracked.delete(address);
  }

  /** Hears of services that nobody here tracks. */
  onUnknownService(listener: ((address: string) => void) | undefined): void {
    this.#onServiceBeat = listener;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#stopHearing();
    this.#tracked.clear();
  }

  #hear(address: string, isService: boolean): void {
    const peer = this.#tracked.get(address);
    if (peer !== undefined) peer.heardAt = monotonicNow();
    else if (isService && address !== this.ownAddress) this.#onServiceBeat?.(address);
  }

  #tick(): void {
    const now = monotonicNow();
    // Nothing was heard while this process did not get to run, and what came meanwhile has not been read yet.
    if (now - this.#tickedAt > LATE_BEATS * this.#beatMs) this.#forgive();
    this.#tickedAt = now;
    const isAwaited = this.#onTick();
    if ((isAwaited || this.isService) && this.#transport.isConnected) {
      this.#transport.publish(
        this.#subjects.beat(this.ownAddress),
        this.isService ? SERVICE_BEAT : PLAIN_BEAT,
      );
    }
    for (const [address, peer] of [...this.#tracked]) {
      if (peer.heardAt > now - MISSED_BEATS * peer.beatMs) continue;
      this.#tracked.delete(address);
      const message = "The other end has not been heard of for too long.";
      for (const line of [...peer.lines]) line.lost(new CallError("UNAVAILABLE", message, { stack: false }));
    }
  }

  /** Nobody could be heard for a while, which says nothing about them. */
  #forgive(): void {
    for (const peer of this.#tracked.values()) peer.heardAt = monotonicNow();
  }
}

/** The peer of a user who waits at a reply path, which is its inbox and one part more. */
export function peerAt(replyTo: string, user: string): string {
  return `${user}.${lastPart(replyTo.slice(0, replyTo.lastIndexOf(".")))}`;
}

function lastPart(subject: string): string {
  return subject.slice(subject.lastIndexOf(".") + 1);
}
