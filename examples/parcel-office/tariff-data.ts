/** A part of the world with one price. */
export interface Zone {
  readonly code: string;
  readonly name: string;
  readonly countries: readonly string[];
  /** Cents for a parcel, whatever it weighs. */
  readonly base: number;
  /** Cents for each kilogram begun. */
  readonly perKg: number;
  readonly days: { readonly standard: number; readonly express: number };
}

/** Where parcels go. */
export const ZONES: readonly Zone[] = [
  {
    code: "domestic",
    name: "Within the country",
    countries: ["PT"],
    base: 350,
    perKg: 60,
    days: { standard: 2, express: 1 },
  },
  {
    code: "europe",
    name: "Europe",
    countries: ["CH", "DE", "ES", "FR", "IT", "NO"],
    base: 790,
    perKg: 140,
    days: { standard: 5, express: 2 },
  },
  {
    code: "world",
    name: "The rest of the world",
    countries: ["BR", "CA", "IN", "JP", "US"],
    base: 1690,
    perKg: 420,
    days: { standard: 12, express: 4 },
  },
];

/** What one euro is worth; fixed, so that the same question has the same answer. */
export const RATES: Readonly<Record<string, number>> = { EUR: 1, CHF: 0.95, GBP: 0.85, NOK: 11.6, USD: 1.1 };

/** What sending a parcel costs. */
export interface Quote {
  readonly zone: string;
  readonly service: "standard" | "express";
  readonly kg: number;
  readonly price: { readonly amount: number; readonly currency: "EUR" };
  readonly days: number;
  readonly lines: readonly { readonly what: string; readonly amount: number }[];
}

/** Adds a price up; express doubles what weight costs. */
export function quotePrice(zone: Zone, kg: number, service: Quote["service"], insured: boolean): Quote {
  const weight = Math.ceil(kg) * zone.perKg * (service === "express" ? 2 : 1);
  const parts = [
    { what: "base", cents: zone.base },
    { what: "weight", cents: weight },
    ...(insured ? [{ what: "insurance", cents: 250 }] : []),
  ];
  const cents = parts.reduce((sum, part) => sum + part.cents, 0);
  return {
    zone: zone.code,
    service,
    kg,
    price: { amount: cents / 100, currency: "EUR" },
    days: zone.days[service],
    lines: parts.map((part) => ({ what: part.what, amount: part.cents / 100 })),
  };
}
