import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { defineOperation, toOperation } from "./operation.ts";
import type { OperationSpec } from "./operation-types.ts";

const spec: OperationSpec = {
  namespace: "task",
  name: "create",
  version: "1.0.0",
  type: "mutation",
  description: "Creates a task.",
  handler: () => 1,
};

/** The spec with some fields as only untyped code could write them. */
const broken = (fields: object) => ({ ...spec, ...fields }) as OperationSpec;

describe("defineOperation", () => {
  it("RE-10 gives a spec its id and freezes a copy", () => {
    const given = { ...spec };
    const operation = defineOperation(given);
    expect(operation).toEqual({ ...spec, id: "task.create" });
    expect(Object.isFrozen(operation)).toBe(true);
    expect(Object.isFrozen(given)).toBe(false);
  });

  it.each([
    [{ name: "list-open_orders" }, "List open orders"],
    [{ name: "bookParcel" }, "Book parcel"],
    [{ name: "repos/get.all" }, "Repos get all"],
    [{ name: "x", title: "Book a parcel" }, "Book a parcel"],
    [{ name: "x", title: "Book a parcel", description: "" }, ""],
  ])("RE-10 gives what is left out its default (%j)", (fields, description) => {
    const least = { namespace: "task", handler: () => 1, ...fields };
    expect(defineOperation(least)).toEqual({
      ...least,
      id: `task.${fields.name}`,
      version: "1.0.0",
      type: "mutation",
      description,
    });
    expect(toOperation(least)).toEqual(defineOperation(least));
  });

  it.each(["a", "A-b_9", "__proto__", "constructor", "9lives", "x".repeat(64)])(
    "RE-10 takes the namespace %s",
    (namespace) => {
      expect(defineOperation({ ...spec, namespace }).id).toBe(`${namespace}.create`);
    },
  );

  it.each(["", "-a", ".a", "a.b", "a/b", "a b", "ä", "x".repeat(65), 5, null, undefined])(
    "RE-10 refuses the namespace %s",
    (namespace) => {
      expect(() => defineOperation(broken({ namespace }))).toThrow(TypeError);
      expect(() => defineOperation(broken({ namespace }))).toThrow(/^The namespace of an operation may hold/);
    },
  );

  it.each(["a", "repos/get", "a.b.c", "__proto__", "toString", "x".repeat(200)])(
    "RE-10 takes the name %s",
    (name) => {
      expect(defineOperation({ ...spec, name }).id).toBe(`task.${name}`);
    },
  );

  it.each(["", "/a", ".a", "-a", "a b", "a\n", "x".repeat(201), {}, undefined])(
    "RE-10 refuses the name %s",
    (name) => {
      expect(() => defineOperation(broken({ name }))).toThrow(/^The name of an operation may hold/);
    },
  );

  it("RE-10 says what a name may hold and what was found", () => {
    const rule = 'and starts with none of "-", "." and "/"; it is';
    expect(() => defineOperation({ ...spec, namespace: "a b" })).toThrow(
      `The namespace of an operation may hold letters, digits, "_" and "-", at most 64, ${rule} "a b".`,
    );
    expect(() => defineOperation(broken({ name: 5 }))).toThrow(
      `The name of an operation may hold letters, digits, "_", "-", "." and "/", at most 200, ${rule} of type number.`,
    );
    const long = `${"x".repeat(80)}"`;
    expect(() => defineOperation({ ...spec, name: "x".repeat(300) })).toThrow(`it is "${long}.`);
  });

  it("RE-10 splits an id at its first dot, whatever the name holds", () => {
    const part = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,20}$/);
    const name = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_./-]{0,40}$/);
    fc.assert(
      fc.property(part, name, (namespace, name) => {
        const { id } = defineOperation({ ...spec, namespace, name });
        expect([id.slice(0, id.indexOf(".")), id.slice(id.indexOf(".") + 1)]).toEqual([namespace, name]);
      }),
    );
  });

  it.each([
    ["version", "1.0", 'a semantic version, such as "1.0.0"'],
    ["version", "v1.0.0", "a semantic version"],
    ["version", "01.0.0", "a semantic version"],
    ["version", 1, "a semantic version"],
    ["type", "procedure", '"query", "mutation" or "subscription"'],
    ["description", null, "a string"],
    ["handler", "run", "a function"],
    ["visibility", "public", '"external" or "internal"'],
    ["outputPolicy", "loud", '"off", "warn" or "strict"'],
    ["source", "bus", '"local", "http", "mcp" or "call"'],
    ["durable", "yes", "true or false"],
    ["durable", null, "true or false"],
    ["tier", "gold", '"community", "pro" or "enterprise"'],
    ["pager", {}, "an object with a next function"],
    ["pager", null, "an object with a next function"],
  ])("RE-10 refuses %s %s and names the field and the fix", (field, value, wanted) => {
    expect(() => defineOperation(broken({ [field]: value }))).toThrow(
      `Operation "task.create": ${field} must be ${wanted}`,
    );
  });

  it.each([true, false])("RE-10 takes an operation behind a bus, its calls kept by it: %s", (durable) => {
    expect(defineOperation({ ...spec, source: "call", durable })).toMatchObject({ source: "call", durable });
  });

  it.each(["1.0.0", "0.0.1-alpha.1+build.5", "10.20.30-rc-1", "1.0.0-0a", "1.0.0+x"])(
    "RE-10 takes the version %s",
    (version) => {
      expect(defineOperation({ ...spec, version }).version).toBe(version);
    },
  );
});

describe("toOperation", () => {
  it("RE-10 gives a defined operation back as it is", () => {
    const operation = query("a.b", () => 1);
    expect(toOperation(operation)).toBe(operation);
  });

  it("RE-10 takes a frozen copy of anything that could still change", () => {
    const loose = { ...query("a.b", () => 1) };
    const taken = toOperation(loose);
    expect(taken).toEqual(loose);
    expect(Object.isFrozen(taken)).toBe(true);
    expect(toOperation(spec).id).toBe("task.create");
  });

  it.each([null, undefined, "a.b", 5])("RE-10 refuses %s", (value) => {
    expect(() => toOperation(value as never)).toThrow("An operation must be a plain object");
  });
});
