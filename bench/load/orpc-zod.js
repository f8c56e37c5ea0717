import "@orpc/server";
import "zod";
