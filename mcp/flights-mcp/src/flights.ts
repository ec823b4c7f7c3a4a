/** Converts Duffel's offers to flights, cheapest first. */
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'

/** Flights in a result; a search finds hundreds. */
const MAX_FLIGHTS = 25

const place = z.object({ iata_code: z.string(), name: z.string().nullish() })
const carrier = z.object({ name: z.string(), iata_code: z.string().nullish() })
const cents = z.string().regex(/^\d+(\.\d+)?$/)

/** The fields of an offer that we read. */
const offer = z.object({
  id: z.string(),
  total_amount: cents,
  total_currency: z.string(),
  expires_at: z.string().nullish(),
  owner: carrier,
  slices: z
    .array(
      z.object({
        duration: z.string().nullish(),
        origin: place,
        destination: place,
        segments: z
          .array(
            z.object({
              origin: place,
              destination: place,
              departing_at: z.string(),
              arriving_at: z.string(),
              marketing_carrier: carrier,
              marketing_carrier_flight_number: z.string().nullish(),
              operating_carrier: carrier.nullish(),
              passengers: z.array(z.object({ cabin_class: z.string().nullish() })).nullish(),
            }),
          )
          .min(1),
      }),
    )
    .min(1),
})
type Offer = z.output<typeof offer>

const segment = z.object({
  flight: z.string(),
  airline: z.string(),
  operated_by: z.string().optional(),
  from: z.string(),
  to: z.string(),
  departs: z.string(),
  arrives: z.string(),
  cabin_class: z.string().optional(),
})
const way = z.object({
  from: z.string(),
  to: z.string(),
  departs: z.string(),
  arrives: z.string(),
  duration: z.string().optional(),
  connections: z.int(),
  segments: z.array(segment),
})
/** Times are local to their airport, durations ISO 8601; the price is for all travellers. */
export const flight = z.object({
  id: z.string(),
  airline: z.string(),
  price: z.object({ amount: z.string(), currency: z.string() }),
  expires_at: z.string().optional(),
  ways: z.array(way),
})
type Flight = z.output<typeof flight>

export interface FlightsFound {
  flights: Flight[]
  /** Offers that could be parsed. */
  offered: number
  /** Offers that could not be parsed. */
  unreadable: number
}

/** Throws `bad_answer` when the answer is not a list of offers, or none can be parsed. */
export function flightsOf(answer: unknown): FlightsFound {
  const list = z.object({ offers: z.array(z.unknown()) }).safeParse(answer)
  if (!list.success) throw unexpectedAnswer()
  const read = list.data.offers.map((one) => offer.safeParse(one))
  const offers = read.flatMap((one) => (one.success ? [one.data] : []))
  if (offers.length === 0 && read.length > 0) throw unexpectedAnswer()
  const cheapest = offers.toSorted(byPrice).slice(0, MAX_FLIGHTS)
  return { flights: cheapest.map(toFlight), offered: offers.length, unreadable: read.length - offers.length }
}

function unexpectedAnswer(): ToolFailure {
  return new ToolFailure('bad_answer', 'Duffel’s answer has an unexpected format. Try again later.')
}

/** A search has one currency; offers of the same price keep Duffel's order. */
function byPrice(a: Offer, b: Offer): number {
  return Number(a.total_amount) - Number(b.total_amount)
}

function toFlight({ id, owner, total_amount, total_currency, expires_at, slices }: Offer): Flight {
  return {
    id,
    airline: owner.name,
    price: { amount: total_amount, currency: total_currency },
    ...(expires_at == null ? {} : { expires_at }),
    ways: slices.map(toWay),
  }
}

function toWay({ origin, destination, duration, segments }: Offer['slices'][number]): z.output<typeof way> {
  return {
    from: origin.iata_code,
    to: destination.iata_code,
    departs: segments[0]?.departing_at ?? '',
    arrives: segments.at(-1)?.arriving_at ?? '',
    ...(duration == null ? {} : { duration }),
    connections: segments.length - 1,
    segments: segments.map(toSegment),
  }
}

function toSegment(one: Offer['slices'][number]['segments'][number]): z.output<typeof segment> {
  const { marketing_carrier: sold, operating_carrier: operated } = one
  const cabin = one.passengers?.[0]?.cabin_class
  return {
    flight: `${sold.iata_code ?? ''}${one.marketing_carrier_flight_number ?? ''}`,
    airline: sold.name,
    ...(operated == null || operated.name === sold.name ? {} : { operated_by: operated.name }),
    from: one.origin.iata_code,
    to: one.destination.iata_code,
    departs: one.departing_at,
    arrives: one.arriving_at,
    ...(cabin == null ? {} : { cabin_class: cabin }),
  }
}
