import { MATRIX, tryCells } from "./sdk-matrix.ts";

tryCells(MATRIX.filter(({ way }) => way !== "stdio"));
