import type { LookupAddress, LookupAllOptions } from "node:dns";
import type { LookupFunction } from "node:net";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { CallError } from "../core/errors/errors.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import { shortText } from "../core/text/truncate-text.ts";

/** Resolves every address of a host name, as `dns.lookup` does. */
export type ResolveHost = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

/** Decides which hosts may be at private addresses, and on which ports. */
export interface AddressGuard {
  mayBePrivate(hostname: string, port: string): boolean;
}

/** Answers of Azure's host to its guests alone, though the range says nothing of it. */
const METADATA_ADDRESSES: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** Names of this machine, as URLs spell them. */
export const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

/** Tells whether an address is one of the open internet: what is private, local, reserved or a tunnel to any of these is not. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return isPublicV4(ipaddr.IPv4.parse(address));
  // A zone names a network that this machine is part of.
  if (version === 0 || address.includes("%")) return false;
  const v6 = ipaddr.IPv6.parse(toPlainV6(address));
  const embedded = embeddedV4(v6);
  if (embedded !== undefined) return isPublicV4(embedded);
  // All that has been given out lies in 2000::/3.
  return ((v6.parts[0] as number) & 0xe000) === 0x2000 && v6.range() === "unicast";
}

/** The one way to write an address, without dots: `ipaddr.js` takes `::1.2.3.4` for `::ffff:1.2.3.4`, and no system does. */
function toPlainV6(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && !METADATA_ADDRESSES.has(address.toString());
}

/** `::ffff:a.b.c.d`, and `64:ff9b::a.b.c.d`, by which IPv6 networks reach the IPv4 internet. */
function embeddedV4(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const [first, second, third, fourth, fifth, sixth] = address.parts;
  const isTranslated = first === 0x64 && second === 0xff9b;
  if (!isTranslated || third !== 0 || fourth !== 0 || fifth !== 0 || sixth !== 0) return undefined;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

/** Makes a guard from the hosts that the user named and those allowed besides, each as `host`, `host:port` or `host:*`. */
export function createAddressGuard(
  trusted: readonly string[],
  allowPrivate: readonly string[] | boolean | undefined,
): AddressGuard {
  if (allowPrivate === true) return { mayBePrivate: () => true };
  const places = new Set([...trusted, ...(allowPrivate || [])].flatMap((name) => readPlaces(name) ?? []));
  return {
    mayBePrivate(hostname, port) {
      const host = bareHost(hostname);
      return places.has(`${host} ${port}`) || places.has(`${host} ${EVERY_PORT}`);
    },
  };
}

const EVERY_PORT = "*";
/** Ports that a host named without one stands for: those of `http` and `https`. */
const DEFAULT_PORTS: readonly string[] = ["80", "443"];
const NAMED = /^(\[[^[\]]+\]|[^[\]:]+)(?::(\d{1,5}|\*))?$/;

/**
 * Reads how a host is named, as each host and port it means, apart by a space, which neither can hold: an IPv6 address has colons of
 * its own. Gives nothing for what names no host.
 */
export function readPlaces(name: string): readonly string[] | undefined {
  const text = name.trim();
  const [, host = "", port] = NAMED.exec(isIP(text) === 6 ? `[${text}]` : text) ?? [];
  // Written as requests have it: in lower case, names in other scripts in their ASCII form.
  const url = /[/?#@\\\s]/.test(host) ? undefined : parseUrl(`http://${host}`);
  if (url === undefined || Number(port) > 65_535) return undefined;
  const ports = port === undefined ? DEFAULT_PORTS : [port === EVERY_PORT ? port : String(Number(port))];
  return ports.map((one) => `${bareHost(url.hostname)} ${one}`);
}

/** Names the host and port that an address leads to, also where the port is the default of its scheme. */
export function namedPlace(address: string | URL): string {
  const { hostname, port, protocol } = new URL(address);
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}

/** A host as names are compared: without brackets, the final dot, and other ways to write the same address. */
export function bareHost(hostname: string): string {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");
  return isIP(host) === 6 && !host.includes("%") ? toPlainV6(host) : host;
}

/** A host as messages show it. */
export function shownHost(host: string): string {
  return shortText(host, 255);
}

/** A host and its port as messages show them. */
export function withPort(host: string, port: string): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The refusal of an address that is not public. */
export function refusePrivate(hostname: string, port: string): CallError {
  const host = shownHost(bareHost(hostname));
  const advice = "name it in the option allowPrivate";
  const message = `${withPort(host, port)} is at a private or reserved address; ${advice} to call it there.`;
  const failure = { reason: "private-address", advice } as const;
  return new CallError("ACCESS_DENIED", message, { details: { host }, failure, stack: false });
}

/**
 * Makes the `lookup` of one connection's options: every address is checked, and the very list that was checked is what is
 * connected to, so that a name cannot be public for the check and private for the connection.
 */
export function guardedLookup(resolve: ResolveHost, mayBePrivate: boolean, port: string): LookupFunction {
  return (hostname, options, callback) => {
    resolve(
      hostname,
      { family: options.family ?? 0, hints: options.hints ?? 0, all: true },
      (error, addresses) => {
        const [first] = addresses ?? [];
        if (error !== null || first === undefined) return callback(error ?? notFound(), "", 0);
        const isAllowed = mayBePrivate || addresses.every(({ address }) => isPublicAddress(address));
        if (!isAllowed) return callback(refusePrivate(hostname, port) as NodeJS.ErrnoException, "", 0);
        if (options.all === true) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      },
    );
  };
}

function notFound(): NodeJS.ErrnoException {
  return Object.assign(new Error("The name has no address."), { code: "ENOTFOUND" });
}
