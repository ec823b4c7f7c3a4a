/** An offer request's answer as Duffel documents it, by hand. */

export interface OfferWords {
  id?: string
  amount?: string
  from?: string
  to?: string
  connections?: number
  back?: boolean
}

export function offerRequest(offers: unknown[]): object {
  return {
    data: {
      id: 'orq_0000A3bQP9RLVfNUcdpLpw',
      live_mode: false,
      cabin_class: 'economy',
      created_at: '2026-11-20T10:00:00.000000Z',
      client_key: 'a-client-key-that-nobody-needs',
      passengers: [{ id: 'pas_0000A3', type: 'adult', age: null, family_name: null, given_name: null }],
      slices: [],
      offers,
    },
  }
}

export function offer(words: OfferWords = {}): object {
  const {
    id = 'off_00009htYpSCXrwaB9DnUm0',
    amount = '121.50',
    from = 'LHR',
    to = 'JFK',
    connections = 0,
  } = words
  const ways = [slice(from, to, connections), ...(words.back === true ? [slice(to, from, 0)] : [])]
  return {
    id,
    total_amount: amount,
    total_currency: 'GBP',
    tax_amount: '40.80',
    base_amount: '80.70',
    total_emissions_kg: '460',
    expires_at: '2026-11-20T10:42:14.545Z',
    owner: { id: 'arl_00009V', name: 'Example Air', iata_code: 'XA', logo_symbol_url: null },
    payment_requirements: { requires_instant_payment: false, price_guarantee_expires_at: null },
    conditions: { refund_before_departure: null },
    passengers: [{ id: 'pas_0000A3', type: 'adult' }],
    slices: ways,
  }
}

function slice(from: string, to: string, connections: number): object {
  const stops = [from, ...Array.from({ length: connections }, (_, n) => `ST${'ABC'[n] ?? 'X'}`), to]
  return {
    id: 'sli_00009htYpSCXrwaB9Dn123',
    duration: 'PT8H26M',
    origin: place(from),
    destination: place(to),
    fare_brand_name: 'Basic',
    segments: stops.slice(1).map((arrival, n) => ({
      id: `seg_${n}`,
      departing_at: `2027-03-01T0${n}:00:00`,
      arriving_at: `2027-03-01T0${n}:50:00`,
      duration: null,
      distance: null,
      aircraft: null,
      origin: place(stops[n] ?? from),
      destination: place(arrival),
      origin_terminal: null,
      marketing_carrier: { id: 'arl_1', name: 'Example Air', iata_code: 'XA' },
      marketing_carrier_flight_number: `10${n}`,
      operating_carrier: { id: 'arl_2', name: 'Feeder Air', iata_code: null },
      operating_carrier_flight_number: null,
      passengers: [{ passenger_id: 'pas_0000A3', cabin_class: 'economy', baggages: [] }],
    })),
  }
}

function place(code: string): object {
  return { id: `arp_${code}`, type: 'airport', iata_code: code, name: `Airport of ${code}`, city: null }
}

export function duffelErrors(status: number, code: string, message: string): object {
  return {
    errors: [
      { type: 'invalid_request_error', title: 'Something is wrong', message, code, documentation_url: '' },
    ],
    meta: { status, request_id: 'FZW0H3HdJwKk5HMAAKxB' },
  }
}
