import { Analytics } from "../analytics";

export const dynamic = "force-dynamic"; // so that scripts have the nonce of their request
export const metadata = { title: "With the SDK" };

export default function SdkLayout({ children }) {
  return (
    <html lang="en">
      <body>
        <Analytics />
        {children}
      </body>
    </html>
  );
}
