/** `DATABASE_URL`. */
import { z } from 'zod'

export const databaseUrl = z
  .url({
    protocol: /^postgres(ql)?$/,
    error: 'must be an address like postgres://sandlot@db.example.org/sandlot',
  })
  .optional()
