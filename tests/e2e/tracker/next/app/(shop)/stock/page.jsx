export default async function Stock({ searchParams }) {
  throw new RangeError(`no stock of ${(await searchParams).product}`);
}
