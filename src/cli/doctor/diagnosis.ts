/** How something is doing. */
export type DiagnosisStatus = "ok" | "note" | "problem";

/** One thing that was looked at; every text is fit to be shown. */
export interface Diagnosis {
  /** Such as "config", "source" or "port". */
  readonly area: string;
  /** Which one of them. */
  readonly subject: string;
  readonly status: DiagnosisStatus;
  readonly message: string;
  /** What to do; with every problem. */
  readonly fix?: string;
}

/** Makes a diagnosis that all is well. */
export function fine(area: string, subject: string, message: string): Diagnosis {
  return { area, subject, status: "ok", message };
}

/** Makes a diagnosis of something that is worth knowing and breaks nothing. */
export function note(area: string, subject: string, message: string, fix?: string): Diagnosis {
  return { area, subject, status: "note", message, ...(fix !== undefined && { fix }) };
}

/** Makes a diagnosis of something that is broken, and says what to do. */
export function problem(area: string, subject: string, message: string, fix: string): Diagnosis {
  return { area, subject, status: "problem", message, fix };
}
