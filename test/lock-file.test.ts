import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./run-node.ts";

interface LockedPackage {
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
  readonly optional?: boolean;
  readonly engines?: { readonly node?: string };
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Work without their scripts: `npm run conformance` installs the first with `--ignore-scripts`; the other only looks at versions. */
const UNNEEDED = new Set(["node_modules/@modelcontextprotocol/inspector", "node_modules/protobufjs"]);

describe.each([
  "package-lock.json",
  "bench/package-lock.json",
  "conformance/package-lock.json",
  "documents/package-lock.json",
])("%s", (file) => {
  const lock = JSON.parse(readFileSync(join(ROOT, file), "utf8"));
  const packages = Object.entries<LockedPackage>(lock.packages);

  it("names every optional package, without which npm ci refuses it; `npm run lock` completes it", () => {
    const locked = packages.map(([path]) => path);
    const wanted = packages.flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies));
    expect(wanted.filter((name) => !locked.some((path) => path.endsWith(`node_modules/${name}`)))).toEqual(
      [],
    );
  });

  it("records no download address", () => {
    expect(packages.filter(([, { resolved }]) => resolved?.startsWith("http")).map(([path]) => path)).toEqual(
      [],
    );
  });

  it("holds no package that runs a script when it is installed", () => {
    const scripted = packages.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path);
    expect(scripted.filter((path) => !UNNEEDED.has(path))).toEqual([]);
  });
});

it("package-lock.json asks for no newer Node than we do, so that npm ci warns of none", () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const asking = Object.entries<LockedPackage>(packages).filter(
    ([, { optional, engines }]) => !optional && /^>=? *(?:2[1-9]|[3-9]\d)[^|]*$/.test(engines?.node ?? ""),
  );
  expect(asking.map(([path]) => path)).toEqual([]);
});
