import type { Io } from "../io.ts";
import { counted } from "../terminal/counted.ts";
import { createStyle } from "../terminal/style.ts";
import { type Cell, renderTable } from "../terminal/table.ts";
import type { Diagnosis, DiagnosisStatus } from "./diagnosis.ts";

/** Writes diagnoses for people, each of them once: a table of what needs nothing, then the rest with what to do. */
export async function toDoctorText(diagnoses: readonly Diagnosis[], io: Io): Promise<string> {
  const { stdout: stream, env } = io;
  const style = createStyle(stream, env);
  const paint: Readonly<Record<DiagnosisStatus, (text: string) => string>> = {
    ok: style.green,
    note: style.yellow,
    problem: style.red,
  };
  const calm = diagnoses.filter(({ fix }) => fix === undefined);
  const rows = calm.map(({ area, subject, status, message }): readonly Cell[] => [
    { text: status, paint: paint[status] },
    area,
    subject,
    message,
  ]);
  const table = await renderTable(rows, { head: ["", "what", "which", "how it is"], stream, env });
  const advice = diagnoses.filter(({ fix }) => fix !== undefined).sort(byWeight);
  const lines = advice.flatMap(({ area, subject, status, message, fix }) => [
    `${paint[status](status)}  ${[area, subject].filter(Boolean).join(" ")}: ${message}`,
    `  ${style.cyan("fix:")} ${fix}`,
  ]);
  const problems = diagnoses.filter(({ status }) => status === "problem").length;
  const end = problems === 0 ? style.green("healthy") : style.red(counted(problems, "problem"));
  return `${[table, "", ...lines, ...(lines.length > 0 ? [""] : []), end].join("\n")}\n`;
}

function byWeight(a: Diagnosis, b: Diagnosis): number {
  return Number(b.status === "problem") - Number(a.status === "problem");
}
