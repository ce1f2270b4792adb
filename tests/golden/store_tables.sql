CREATE TABLE IF NOT EXISTS `events`
(
    `id` FixedString(16),
    `website_id` LowCardinality(String),
    `event_name` LowCardinality(String),
    `namespace` LowCardinality(String),
    `source` LowCardinality(String),
    `anonymous_id` String,
    `session_id` String,
    `url` String,
    `path` String,
    `title` String,
    `referrer` String,
    `country` LowCardinality(String),
    `region` LowCardinality(String),
    `city` LowCardinality(String),
    `browser_name` LowCardinality(String),
    `browser_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_type` LowCardinality(String),
    `language` LowCardinality(String),
    `timezone` LowCardinality(String),
    `screen_resolution` LowCardinality(String),
    `viewport_size` LowCardinality(String),
    `utm_source` LowCardinality(String),
    `utm_medium` LowCardinality(String),
    `utm_campaign` LowCardinality(String),
    `utm_term` LowCardinality(String),
    `utm_content` LowCardinality(String),
    `currency` LowCardinality(String),
    `time` DateTime64(3, 'UTC'),
    `received_at` DateTime64(3, 'UTC'),
    `is_bot` Bool,
    `time_on_page` Nullable(Float64),
    `scroll_depth` Nullable(Float64),
    `interaction_count` Nullable(Float64),
    `page_count` Nullable(Float64),
    `load_time` Nullable(Float64),
    `dom_ready_time` Nullable(Float64),
    `dom_interactive` Nullable(Float64),
    `ttfb` Nullable(Float64),
    `render_time` Nullable(Float64),
    `value` Nullable(Float64),
    `properties` String
)
ENGINE = MergeTree
ORDER BY (website_id, time)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1, old_parts_lifetime = 480, merge_selector_base = 8, non_replicated_deduplication_window = 1000, default_compression_codec = 'ZSTD(1)';

CREATE TABLE IF NOT EXISTS `errors`
(
    `id` FixedString(16),
    `website_id` LowCardinality(String),
    `stack` String,
    `message` String,
    `level` LowCardinality(String),
    `error_type` LowCardinality(String),
    `filename` String,
    `path` String,
    `url` String,
    `anonymous_id` String,
    `session_id` String,
    `country` LowCardinality(String),
    `region` LowCardinality(String),
    `city` LowCardinality(String),
    `browser_name` LowCardinality(String),
    `browser_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_type` LowCardinality(String),
    `time` DateTime64(3, 'UTC'),
    `is_bot` Bool,
    `lineno` Nullable(Float64),
    `colno` Nullable(Float64)
)
ENGINE = MergeTree
ORDER BY (website_id, time)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1, old_parts_lifetime = 480, merge_selector_base = 8, non_replicated_deduplication_window = 1000, default_compression_codec = 'ZSTD(1)';

CREATE TABLE IF NOT EXISTS `performance`
(
    `id` FixedString(16),
    `website_id` LowCardinality(String),
    `metric_name` LowCardinality(String),
    `path` String,
    `url` String,
    `anonymous_id` String,
    `session_id` String,
    `country` LowCardinality(String),
    `region` LowCardinality(String),
    `city` LowCardinality(String),
    `browser_name` LowCardinality(String),
    `browser_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_type` LowCardinality(String),
    `time` DateTime64(3, 'UTC'),
    `is_bot` Bool,
    `metric_value` Nullable(Float64)
)
ENGINE = MergeTree
ORDER BY (website_id, time)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1, old_parts_lifetime = 480, merge_selector_base = 8, non_replicated_deduplication_window = 1000, default_compression_codec = 'ZSTD(1)';

ALTER TABLE `events` MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild';

ALTER TABLE `events` ADD PROJECTION IF NOT EXISTS visits
(
    SELECT
        website_id,
        is_bot,
        intDiv(toUnixTimestamp64Milli(time), 86400000),
        xxHash32(session_id),
        session_id,
        anonymous_id,
        country,
        region,
        city,
        browser_name,
        os_name,
        device_type,
        language,
        utm_source,
        utm_medium,
        utm_campaign,
        utm_term,
        utm_content,
        min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id)))),
        max(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id)))),
        count(),
        countIf(event_name IN ('screen_view', 'pageview', 'page_view')),
        argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), path != ''),
        argMaxIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), path != ''),
        argMinIf(referrer, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), referrer != '')
    GROUP BY
        website_id,
        is_bot,
        intDiv(toUnixTimestamp64Milli(time), 86400000),
        xxHash32(session_id),
        session_id,
        anonymous_id,
        country,
        region,
        city,
        browser_name,
        os_name,
        device_type,
        language,
        utm_source,
        utm_medium,
        utm_campaign,
        utm_term,
        utm_content
) WITH SETTINGS (index_granularity = 1024);

ALTER TABLE `events` MATERIALIZE PROJECTION visits SETTINGS mutations_sync = 2;

CREATE VIEW IF NOT EXISTS `visits` AS
SELECT
    website_id,
    is_bot,
    day,
    session_mark,
    session_id,
    anonymous_id,
    country,
    region,
    city,
    browser_name,
    os_name,
    device_type,
    language,
    utm_source,
    utm_medium,
    utm_campaign,
    utm_term,
    utm_content,
    finalizeAggregation(first_place_state) AS first_place,
    finalizeAggregation(last_place_state) AS last_place,
    finalizeAggregation(event_count_state) AS event_count,
    finalizeAggregation(page_views_state) AS page_views,
    first_path,
    last_path,
    first_referrer
FROM (SELECT * FROM mergeTreeProjection(currentDatabase(), 'events', 'visits')) AS visit(website_id, is_bot, day, session_mark, session_id, anonymous_id, country, region, city, browser_name, os_name, device_type, language, utm_source, utm_medium, utm_campaign, utm_term, utm_content, first_place_state, last_place_state, event_count_state, page_views_state, first_path, last_path, first_referrer);
