import "@trpc/server";
import "zod";
