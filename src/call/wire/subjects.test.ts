import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { NOBODY, Subjects } from "./subjects.ts";

const letters = (chars: string, max: number) =>
  fc
    .string({ unit: fc.constantFrom(...chars), minLength: 1, maxLength: max })
    .filter((text) => /^[A-Za-z0-9_]/.test(text));
const operationId = () =>
  fc.tuple(letters("ab_-1", 8), letters("ab_./-1", 12)).map(([namespace, name]) => `${namespace}.${name}`);

const subjects = new Subjects("p.q", "ada");

describe("Subjects", () => {
  it("Call: no two operations share a subject, and none breaks out of its place", () => {
    fc.assert(
      fc.property(operationId(), operationId(), (one, other) => {
        const place = subjects.request(one);
        expect(place === subjects.request(other)).toBe(one === other);
        expect(place).toMatch(/^p\.q\.call\.ada\.[^.\s*>]+\.[^.\s*>]+$/);
        expect(subjects.isFor(place, one)).toBe(true);
        expect(subjects.isFor(place, other)).toBe(one === other);
        expect(subjects.userOf(place)).toBe("ada");
      }),
      runs(2_000),
    );
  });

  it.each([
    ["a.b", "a.b"],
    ["a.b.c", "a.b~c"],
    ["a.b..c", "a.b~~c"],
    ["a.b/../c", "a.b/~~/c"],
    ["a.b.", "a.b~"],
    [`a.${"x".repeat(200)}`, `a.${"x".repeat(200)}`],
  ])("Call: %j has the place %j", (id, place) => {
    expect(subjects.request(id)).toBe(`p.q.call.ada.${place}`);
    expect(subjects.stop(id)).toBe(`p.q.stop.ada.${place}`);
    expect(subjects.route("call", { operationId: id })).toBe(`p.q.call.*.${place}`);
  });

  it("Call: a subject is for no other operation, a part of its own name included", () => {
    const place = subjects.request("a.b.c");
    for (const id of ["b.c", "c", "b~c", "a.b", "ada.a.b.c", "", "a.b.c.d", "x.b.c"]) {
      expect(subjects.isFor(place, id)).toBe(false);
    }
  });

  it("Call: members of a namespace listen to all users and all names", () => {
    expect(subjects.route("call", { namespace: "a" })).toBe("p.q.call.*.a.*");
    expect(subjects.route("stop", { namespace: "a" })).toBe("p.q.stop.*.a.*");
  });

  it("Call: knows where no answer may be sent: the protocol's own subjects and the broker's", () => {
    const own = [
      subjects.request("a.b"),
      subjects.peer("x"),
      subjects.beat("x"),
      subjects.service("x"),
      subjects.who,
    ];
    expect(own.map((subject) => subjects.isOwn(subject))).toEqual(own.map(() => true));
    expect(["$JS.API.STREAM.DELETE.x", "$SYS.x"].map((subject) => subjects.isOwn(subject))).toEqual([
      true,
      true,
    ]);
    expect(["_INBOX.x.y", "p.qq.x", "p"].map((subject) => subjects.isOwn(subject))).toEqual([
      false,
      false,
      false,
    ]);
  });

  it.each(["", ".", "a.", ".a", "a..b", "a b", "a.*", ">", "a\n"])(
    "Call: refuses the prefix %j",
    (prefix) => {
      expect(() => new Subjects(prefix)).toThrow(TypeError);
    },
  );

  it.each(["", "a.b", "*", ">", "a b", "x".repeat(65), "é", "a\n"])("Call: refuses the user %j", (user) => {
    expect(() => new Subjects("p", user)).toThrow(TypeError);
    expect(new Subjects("p").user).toBe(NOBODY);
  });
});
