import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./run-node.ts";
import { envelopeAdapters } from "./seeds/envelope-adapters.ts";
import { envelopeGuide } from "./seeds/envelope-guide.ts";
import { envelopeProposal } from "./seeds/envelope-proposal.ts";
import type { SeedDocument } from "./seeds/sentence.ts";
import { statusEnvelope } from "./seeds/status-envelope.ts";
import { tieredEnvelope } from "./seeds/tiered-envelope.ts";
import { toolEnvelope } from "./seeds/tool-envelope.ts";

/** The normative sentences of the five published documents, each true by running, or with the decision by which Waybill differs. */
const DOCUMENTS: Readonly<Record<string, SeedDocument>> = {
  "ToolEnvelope V1": toolEnvelope,
  "Response envelopes, the proposal": { ...envelopeProposal, ...envelopeAdapters },
  "Response envelopes, the later page": envelopeGuide,
  "Tiered response envelope V1.0": tieredEnvelope,
  "Structured tool response": statusEnvelope,
};

for (const [name, sections] of Object.entries(DOCUMENTS)) {
  describe(name, () => {
    for (const [section, sentences] of Object.entries(sections)) {
      describe(section, () => {
        for (const [ids, says, run, differs] of sentences) {
          it(`${ids} ${says}${differs === undefined ? "" : ` (differs: ${differs})`}`, async () => {
            await run();
          });
        }
      });
    }
  });
}

describe("the sentences", () => {
  const sentences = Object.values(DOCUMENTS).flatMap((sections) => Object.values(sections).flat());
  const requirements = readFileSync(join(ROOT, "docs/requirements.md"), "utf8");
  const cited = new Set(sentences.flatMap(([ids]) => ids.split(" ")));
  const known = [...requirements.matchAll(/^- ([A-Z]+-\d+) /gm)].map(([, id = ""]) => id);

  it("cite requirements that there are, and leave out none of the four formats", () => {
    expect([...cited].filter((id) => !known.includes(id))).toEqual([]);
    expect(known.filter((id) => !id.startsWith("X-") && !cited.has(id))).toEqual([]);
  });

  it("name decisions that there are, where they differ", () => {
    const pages = readdirSync(join(ROOT, "docs/decisions"));
    const names = sentences.flatMap(([, , , differs]) => differs ?? []);
    const isPage = (name: string) =>
      /^\d{3}$/.test(name) && pages.some((page) => page.startsWith(`${name}-`));
    expect(names.filter((name) => !isPage(name) && !requirements.includes(name))).toEqual([]);
  });

  it("are each there once", () => {
    for (const sections of Object.values(DOCUMENTS)) {
      const says = Object.values(sections).flatMap((rows) => rows.map(([, text]) => text));
      expect(new Set(says).size).toBe(says.length);
    }
  });
});
