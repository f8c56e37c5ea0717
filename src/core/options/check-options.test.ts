import { describe, expect, it } from "vitest";
import {
  checkDelay,
  checkNames,
  checkOption,
  checkOptionsObject,
  describeValue,
  refuseName,
} from "./check-options.ts";

describe("an option", () => {
  it("Options: is refused by its name, with what it takes and what it is", () => {
    const message = "docs must be true or false; it is of type string.";
    expect(() => checkOption("docs", "yes", "true or false", false)).toThrow(new TypeError(message));
    expect(() => checkOption("docs", true, "true or false", true)).not.toThrow();
    expect(() => checkOption("docs", undefined, "true or false", false)).not.toThrow();
  });

  it.each([
    [null, "null"],
    [-1, "-1"],
    [Number.NaN, "NaN"],
    [false, "false"],
    [[1], "a list"],
    [{}, "of type object"],
    ["a secret", "of type string"],
    [() => 1, "of type function"],
  ])("Options: %j is described without showing a text (%#)", (value, described) => {
    expect(describeValue(value)).toBe(described);
  });

  it("Options: a delay is a number from 0, or left out", () => {
    expect(() => checkDelay("timeoutMs", undefined)).not.toThrow();
    expect(() => checkDelay("timeoutMs", 0)).not.toThrow();
    expect(() => checkDelay("timeoutMs", null)).toThrow("it is null");
    expect(() => checkDelay("timeoutMs", "3")).toThrow(
      new TypeError("timeoutMs must be a number of milliseconds; it is of type string."),
    );
    expect(() => checkDelay("timeoutMs", -1)).toThrow(
      new TypeError("timeoutMs must be a number of milliseconds, 0 or more; it is -1."),
    );
  });
});

describe("names of options", () => {
  const known = ["timeoutMs", "filter", "url"];

  it.each([
    ["timeout", 'There is no option "timeout"; did you mean "timeoutMs"?'],
    ["TIMEOUTMS", 'There is no option "TIMEOUTMS"; did you mean "timeoutMs"?'],
    ["fliter", 'There is no option "fliter"; did you mean "filter"?'],
    ["catalog", 'There is no option "catalog".'],
  ])("Options: %s is refused, with the one that may be meant", (name, message) => {
    expect(() => checkNames({ [name]: 1 }, known)).toThrow(new TypeError(message));
  });

  it("Options: are shown under their prefix, and cut", () => {
    expect(() => checkNames({ fil: 1 }, known, "limits.")).toThrow('"limits.fil"');
    const long = () => checkNames({ ["x".repeat(100_000)]: 1 }, known);
    expect(long).toThrow(new TypeError(`There is no option "${"x".repeat(80)}".`));
    expect(() => checkNames({ url: 1, filter: undefined }, known)).not.toThrow();
  });

  it("Options: two letters may be wrong, a third is another name", () => {
    expect(() => checkNames({ filtXX: 1 }, known)).toThrow('did you mean "filter"?');
    expect(() => checkNames({ filXXX: 1 }, known)).toThrow(new TypeError('There is no option "filXXX".'));
  });

  it("Options: the beginning of a name is recognised from four letters on", () => {
    expect(() => checkNames({ time: 1 }, known)).toThrow('did you mean "timeoutMs"?');
    expect(() => checkNames({ tim: 1 }, known)).toThrow(new TypeError('There is no option "tim".'));
  });

  it("Options: are looked for in an object only", () => {
    const message = "must be an object with any of: timeoutMs, filter, url.";
    for (const options of [null, 7, "url", ["url"], undefined]) {
      expect(() => checkOptionsObject(options, known)).toThrow(new TypeError(`The options ${message}`));
    }
    expect(() => checkOptionsObject([], known, "limits.")).toThrow(new TypeError(`limits ${message}`));
    expect(() => checkOptionsObject({ urk: 1 }, known, "limits.")).toThrow('did you mean "limits.url"?');
    expect(() => checkOptionsObject({ url: 1 }, known)).not.toThrow();
  });
});

describe("one name of options", () => {
  const known = ["timeoutMs", "signal"];
  const refuse = (given: object, name: string) => () => refuseName(given, name, known);

  it("Options: is refused where it is an own one with a value", () => {
    const message = 'There is no option "timeout"; did you mean "timeoutMs"?';
    expect(refuse({ timeout: 5 }, "timeout")).toThrow(new TypeError(message));
    expect(refuse({ deadline: null }, "deadline")).toThrow(new TypeError('There is no option "deadline".'));
  });

  it("Options: is let through where it is undefined, or a prototype offers it", () => {
    expect(refuse({ timeout: undefined }, "timeout")).not.toThrow();
    expect(refuse(Object.create({ timeout: 5 }), "timeout")).not.toThrow();
  });
});
