import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createAddressGuard,
  guardedLookup,
  isPublicAddress,
  namedPlace,
  readPlaces,
} from "./address-guard.ts";

describe("isPublicAddress", () => {
  it.each([
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "localhost",
    "",
  ])("RE-25 takes %s for no address of the open internet", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2606:4700::1111",
    "2a00:1450:4001:830::200e",
  ])("RE-25 takes %s for an address of the open internet", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it("RE-25 judges an IPv4 address the same however IPv6 wraps it", () => {
    const hex = (high: number, low: number) => (high * 256 + low).toString(16);
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
        const wrapped = [
          `::ffff:${address}`,
          `::ffff:${hex(a, b)}:${hex(c, d)}`,
          `64:ff9b::${hex(a, b)}:${hex(c, d)}`,
        ];
        for (const other of wrapped) expect(isPublicAddress(other)).toBe(isPublicAddress(address));
      }),
    );
  });

  it("RE-25 never throws", () => {
    fc.assert(fc.property(fc.string(), (text) => typeof isPublicAddress(text) === "boolean"));
  });
});

describe("createAddressGuard", () => {
  it.each([
    ["localhost", "localhost", "80", true],
    ["localhost", "localhost", "443", true],
    ["localhost", "localhost", "6379", false],
    ["LocalHost.:*", "localhost", "8080", true],
    ["localhost:080", "localhost", "80", true],
    ["bücher.test:81", "xn--bcher-kva.test", "81", true],
    ["localhost:8080", "localhost", "8080", true],
    ["localhost:8080", "localhost", "80", false],
    ["localhost", "localhost.", "80", true],
    ["localhost", "evil.localhost", "80", false],
    ["[::1]:80", "[::1]", "80", true],
    ["[::1]:80", "[::1]", "81", false],
    ["::1", "[::1]", "443", true],
    ["::1", "[::1]", "81", false],
    ["[0:0:0:0:0:0:0:1]:*", "[::1]", "81", true],
    ["10.0.0.1", "10.0.0.1", "80", true],
    ["10.0.0.1", "10.0.0.2", "80", false],
  ])("RE-25 lets %s vouch for %s at port %s: %s", (name, hostname, port, expected) => {
    expect(createAddressGuard([name], undefined).mayBePrivate(hostname, port)).toBe(expected);
    expect(createAddressGuard([], [name]).mayBePrivate(hostname, port)).toBe(expected);
  });

  it.each([
    "",
    "http://localhost",
    "localhost/a",
    "localhost:",
    "localhost:99999",
    "a b",
    "[::1",
    "a:1:2",
    "user@host",
  ])("RE-25 takes %j for the name of no host", (name) => expect(readPlaces(name)).toBeUndefined());

  it("RE-25 trusts the port that an address leads to, named or not", () => {
    expect(["http://localhost/a", "https://localhost", "http://[::1]:81"].map(namedPlace)).toEqual([
      "localhost:80",
      "localhost:443",
      "[::1]:81",
    ]);
  });

  it("RE-25 lets every host be private where that is the option, and none where it is not", () => {
    expect(createAddressGuard([], true).mayBePrivate("any", "80")).toBe(true);
    expect(createAddressGuard([], false).mayBePrivate("any", "80")).toBe(false);
    expect(createAddressGuard([], undefined).mayBePrivate("any", "80")).toBe(false);
  });
});

describe("guardedLookup", () => {
  const look = (addresses: readonly string[], mayBePrivate = false) =>
    new Promise<unknown>((resolve) => {
      const lookup = guardedLookup(
        (_name, _options, callback) => {
          callback(
            null,
            addresses.map((address) => ({ address, family: 4 })),
          );
        },
        mayBePrivate,
        "443",
      );
      lookup("api.test", { all: true }, (error, found) => resolve(error ?? found));
    });

  it("RE-25 refuses a name when one of its addresses is private", async () => {
    expect(await look(["8.8.8.8", "1.1.1.1"])).toHaveLength(2);
    expect(await look(["8.8.8.8", "10.0.0.1"])).toMatchObject({ code: "ACCESS_DENIED" });
    expect(await look(["10.0.0.1"], true)).toHaveLength(1);
  });

  it("RE-25 takes a name without an address for one that is not there", async () => {
    expect(await look([])).toMatchObject({ code: "ENOTFOUND" });
  });
});
