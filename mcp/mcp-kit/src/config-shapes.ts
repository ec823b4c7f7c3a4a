/** Settings of more than one server. */
import { z } from 'zod'

/** The address of an API that receives a credential. Only its origin counts. */
export const apiAddress = z
  .url({ error: 'must be an address like https://api.example.org' })
  .refine((text) => {
    const { protocol, hostname } = new URL(text)
    return (
      protocol === 'https:' ||
      (protocol === 'http:' && /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(hostname))
    )
  }, 'must be https; plain http only on this machine, because a credential is sent there')
